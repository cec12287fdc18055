//! The value of a vector: a flat table of nodes, read from JSON into types.
//!
//! The format is told in `spec/vectors/pickle/README.md`.

use num_bigint::BigInt;
use serde_json::Value as Json;

use super::dtype::{self, Dtype};
use super::fields::{
    FieldError, FieldProblem, Fields, array, count, counts, flag, hex, pair, text,
};

/// The value of a vector.
#[derive(Clone, Debug)]
pub struct Table {
    pub(super) root: Datum,
    pub(super) nodes: Vec<Node>,
}

/// A value as it stands at one place of the table.
#[derive(Clone, Debug)]
pub(super) enum Datum {
    None,
    Bool(bool),
    Int(BigInt),
    /// The bits.
    Float(u64),
    Complex(u64, u64),
    /// Generalised UTF-8: surrogates are encoded like any other code point.
    Str(Vec<u8>),
    Bytes(Vec<u8>),
    Global {
        function: bool,
        name: ClassName,
    },
    Ref(usize),
}

/// Module and qualified name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClassName {
    pub(super) module: String,
    pub(super) name: String,
}

impl ClassName {
    pub(super) fn new(module: &str, name: &str) -> Self {
        Self {
            module: module.to_owned(),
            name: name.to_owned(),
        }
    }
}

/// A value that other places refer to.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) body: Body,
    /// Instance attributes.
    pub(super) attrs: Vec<(Datum, Datum)>,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    List(Vec<Datum>),
    Tuple(Vec<Datum>),
    Set(Vec<Datum>),
    Frozenset(Vec<Datum>),
    Dict(Vec<(Datum, Datum)>),
    Bytearray(Vec<u8>),
    Range(Vec<Datum>),
    Slice(Vec<Datum>),
    Map {
        class: ClassName,
        items: Vec<(Datum, Datum)>,
        factory: Option<Datum>,
    },
    Deque {
        maxlen: Datum,
        items: Vec<Datum>,
    },
    Object {
        class: ClassName,
        args: Vec<Datum>,
        is_safe: Option<Datum>,
    },
    Exception {
        class: ClassName,
        args: Vec<Datum>,
        fields: Vec<(String, Datum)>,
    },
    Record {
        class: ClassName,
    },
    Dtype(Dtype),
    Ndarray {
        shape: Vec<u64>,
        fortran: bool,
        dtype: Dtype,
        elements: Elements,
    },
    /// Something that the format does not describe to the end: `opaque` or `npscalar`.
    Opaque(&'static str),
}

/// The elements of an array, in row-first order.
#[derive(Clone, Debug)]
pub(super) enum Elements {
    Raw(Vec<u8>),
    Objects(Vec<Datum>),
}

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    ///
    /// When a field is missing, unknown, or not what the format asks for; and when a reference leads to no node.
    pub fn parse(json: &Json) -> Result<Self, FieldError> {
        let mut table = Fields::of(json, "value")?;
        let nodes = table.take("nodes")?;
        let nodes = array(nodes, "nodes")?;
        let count = nodes.len();
        let nodes = nodes
            .iter()
            .enumerate()
            .map(|(number, node)| Reader { count }.node(node, &format!("nodes[{number}]")))
            .collect::<Result<_, _>>()?;
        let root = Reader { count }.datum(table.take("root")?, "root")?;
        table.end()?;
        Ok(Self { root, nodes })
    }
}

fn class_name(json: &Json, at: &str) -> Result<ClassName, FieldError> {
    let (module, name) = pair(json, at)?;
    Ok(ClassName {
        module: text(module, at)?.to_owned(),
        name: text(name, at)?.to_owned(),
    })
}

fn float(json: &Json, at: &str) -> Result<u64, FieldError> {
    let wrong = || FieldError::new(at, FieldProblem::Expected("a float with its bits"));
    let mut float = Fields::of(json, at)?;
    float.take("float")?;
    let bits = text(float.take("bits")?, at)?;
    float.end()?;
    if bits.len() != 16 {
        return Err(wrong());
    }
    u64::from_str_radix(bits, 16).map_err(|_| wrong())
}

/// Code points as generalised UTF-8.
fn encode_points(points: &[Json], at: &str) -> Result<Vec<u8>, FieldError> {
    let mut out = Vec::new();
    for point in points {
        let wrong = || FieldError::new(at, FieldProblem::Expected("code points"));
        let point = point.as_u64().and_then(|point| u32::try_from(point).ok());
        let point = point.filter(|point| *point < 0x11_0000).ok_or_else(wrong)?;
        match char::from_u32(point) {
            Some(char) => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            // A surrogate takes three bytes, like its neighbours.
            None => {
                let tail = |shift: u32| 0x80 | (point >> shift & 0x3f) as u8;
                out.extend([0xe0 | (point >> 12) as u8, tail(6), tail(0)]);
            }
        }
    }
    Ok(out)
}

/// Reads values, in a table of `count` nodes.
#[derive(Clone, Copy)]
struct Reader {
    count: usize,
}

impl Reader {
    fn datum(self, json: &Json, at: &str) -> Result<Datum, FieldError> {
        let fields = match json {
            Json::Null => return Ok(Datum::None),
            Json::Bool(value) => return Ok(Datum::Bool(*value)),
            Json::String(text) => return Ok(Datum::Str(text.as_bytes().to_owned())),
            Json::Object(fields) => fields,
            _ => return Err(FieldError::new(at, FieldProblem::Expected("a value"))),
        };
        if fields.contains_key("float") {
            return float(json, at).map(Datum::Float);
        }
        let mut fields = fields.iter();
        let (Some((form, content)), None) = (fields.next(), fields.next()) else {
            return Err(FieldError::new(
                at,
                FieldProblem::Expected("one form of value"),
            ));
        };
        Ok(match form.as_str() {
            "int" => {
                let digits = text(content, at)?;
                let int = digits.parse();
                Datum::Int(int.map_err(|_| {
                    FieldError::new(at, FieldProblem::Expected("a decimal integer"))
                })?)
            }
            "complex" => {
                let (re, im) = pair(content, at)?;
                Datum::Complex(float(re, at)?, float(im, at)?)
            }
            "str" => Datum::Str(encode_points(array(content, at)?, at)?),
            "bytes" => Datum::Bytes(hex(content, at)?),
            "type" | "function" => Datum::Global {
                function: form == "function",
                name: class_name(content, at)?,
            },
            "ref" => {
                let number = count(content, at)?;
                match usize::try_from(number) {
                    Ok(number) if number < self.count => Datum::Ref(number),
                    _ => return Err(FieldError::new(at, FieldProblem::NoNode(number))),
                }
            }
            _ => {
                return Err(FieldError::new(
                    at,
                    FieldProblem::Expected("a known form of value"),
                ));
            }
        })
    }

    fn data(self, json: &Json, at: &str) -> Result<Vec<Datum>, FieldError> {
        let items = array(json, at)?.iter().enumerate();
        items
            .map(|(index, item)| self.datum(item, &format!("{at}[{index}]")))
            .collect()
    }

    fn entries(self, json: &Json, at: &str) -> Result<Vec<(Datum, Datum)>, FieldError> {
        let entry = |(index, entry): (usize, &Json)| {
            let at = format!("{at}[{index}]");
            let (key, value) = pair(entry, &at)?;
            Ok((self.datum(key, &at)?, self.datum(value, &at)?))
        };
        array(json, at)?.iter().enumerate().map(entry).collect()
    }

    fn node(self, json: &Json, at: &str) -> Result<Node, FieldError> {
        let mut node = Fields::of(json, at)?;
        let attrs = match node.find("attrs") {
            Some(attrs) => self.entries(attrs, &node.path("attrs"))?,
            None => Vec::new(),
        };
        let kind = text(node.take("t")?, &node.path("t"))?;
        let opaque = match kind {
            "opaque" => Some("opaque"),
            "npscalar" => Some("npscalar"),
            _ => None,
        };
        if let Some(what) = opaque {
            return Ok(Node {
                body: Body::Opaque(what),
                attrs,
            });
        }
        let body = self.body(kind, &mut node)?;
        node.end()?;
        Ok(Node { body, attrs })
    }

    fn body(self, kind: &str, node: &mut Fields<'_>) -> Result<Body, FieldError> {
        let data = |node: &mut Fields<'_>, name| self.data(node.take(name)?, &node.path(name));
        let three = |node: &mut Fields<'_>| {
            let args = data(node, "args")?;
            if args.len() == 3 {
                return Ok(args);
            }
            Err(FieldError::new(
                node.path("args"),
                FieldProblem::Expected("three values"),
            ))
        };
        let entries =
            |node: &mut Fields<'_>, name| self.entries(node.take(name)?, &node.path(name));
        let class = |node: &mut Fields<'_>| class_name(node.take("class")?, &node.path("class"));
        let optional = |node: &mut Fields<'_>, name| {
            let found = node.find(name);
            found
                .map(|found| self.datum(found, &node.path(name)))
                .transpose()
        };
        Ok(match kind {
            "list" => Body::List(data(node, "items")?),
            "tuple" => Body::Tuple(data(node, "items")?),
            "set" => Body::Set(data(node, "items")?),
            "frozenset" => Body::Frozenset(data(node, "items")?),
            "dict" => Body::Dict(entries(node, "items")?),
            "bytearray" => Body::Bytearray(hex(node.take("hex")?, &node.path("hex"))?),
            "range" => Body::Range(three(node)?),
            "slice" => Body::Slice(three(node)?),
            "map" => Body::Map {
                class: class(node)?,
                items: entries(node, "items")?,
                factory: optional(node, "factory")?,
            },
            "deque" => Body::Deque {
                maxlen: self.datum(node.take("maxlen")?, &node.path("maxlen"))?,
                items: data(node, "items")?,
            },
            "object" => Body::Object {
                class: class(node)?,
                args: data(node, "args")?,
                is_safe: optional(node, "is_safe")?,
            },
            "exception" => Body::Exception {
                class: class(node)?,
                args: data(node, "args")?,
                fields: match node.find("fields") {
                    Some(fields) => self.named(fields, &node.path("fields"))?,
                    None => Vec::new(),
                },
            },
            "record" => Body::Record {
                class: class(node)?,
            },
            "dtype" => Body::Dtype(dtype::read(node.take("dtype")?, &node.path("dtype"))?),
            "ndarray" => Body::Ndarray {
                shape: counts(node.take("shape")?, &node.path("shape"))?,
                fortran: flag(node.take("fortran")?, &node.path("fortran"))?,
                dtype: dtype::read(node.take("dtype")?, &node.path("dtype"))?,
                elements: match node.find("items") {
                    Some(items) => Elements::Objects(self.data(items, &node.path("items"))?),
                    None => Elements::Raw(hex(node.take("hex")?, &node.path("hex"))?),
                },
            },
            other => {
                return Err(FieldError::new(
                    node.path("t"),
                    FieldProblem::NodeType(other.to_owned()),
                ));
            }
        })
    }

    fn named(self, json: &Json, at: &str) -> Result<Vec<(String, Datum)>, FieldError> {
        let field = |(index, field): (usize, &Json)| {
            let at = format!("{at}[{index}]");
            let (name, value) = pair(field, &at)?;
            Ok((text(name, &at)?.to_owned(), self.datum(value, &at)?))
        };
        array(json, at)?.iter().enumerate().map(field).collect()
    }
}
