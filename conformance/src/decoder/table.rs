//! The value of a vector: a flat table of nodes, read from JSON into types.
//!
//! The format is told in `spec/vectors/pickle/README.md`.

use data_encoding::HEXLOWER_PERMISSIVE;
use num_bigint::BigInt;
use serde_json::{Map, Value as Json};
use thiserror::Error;

/// A table that is not of the format: where, and why.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{at}: {problem}")]
pub struct TableError {
    at: String,
    problem: TableProblem,
}

impl TableError {
    fn new(at: impl Into<String>, problem: TableProblem) -> Self {
        Self {
            at: at.into(),
            problem,
        }
    }

    /// The field, such as `nodes[3].items[0]`.
    pub fn at(&self) -> &str {
        &self.at
    }

    /// What is wrong with it.
    pub fn problem(&self) -> &TableProblem {
        &self.problem
    }
}

/// What is wrong with a field of a table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TableProblem {
    /// It is not there.
    #[error("missing")]
    Missing,
    /// The format has no such field here.
    #[error("unknown field")]
    Unknown,
    /// It is not what the format asks for.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A reference to a node that is not in the table.
    #[error("no node {0}")]
    NoNode(u64),
    /// A type of node that the format does not have.
    #[error("no type of node {0:?}")]
    NodeType(String),
}

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

/// A numpy dtype.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Dtype {
    Plain {
        kind: String,
        text: String,
        itemsize: u64,
        unit: Option<(String, u64)>,
        metadata: bool,
    },
    Struct {
        fields: Vec<DtypeField>,
        itemsize: u64,
        aligned: bool,
        metadata: bool,
    },
    Subarray {
        base: Box<Dtype>,
        shape: Vec<u64>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct DtypeField {
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) offset: u64,
    pub(super) dtype: Dtype,
}

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    ///
    /// When a field is missing, unknown, or not what the format asks for; and when a reference leads to no node.
    pub fn parse(json: &Json) -> Result<Self, TableError> {
        let mut table = Object::of(json, "value")?;
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

/// An object, and which of its fields have not been asked for.
struct Object<'j> {
    fields: &'j Map<String, Json>,
    taken: Vec<&'static str>,
    at: &'j str,
}

impl<'j> Object<'j> {
    fn of(json: &'j Json, at: &'j str) -> Result<Self, TableError> {
        match json {
            Json::Object(fields) => Ok(Self {
                fields,
                taken: Vec::new(),
                at,
            }),
            _ => Err(TableError::new(at, TableProblem::Expected("an object"))),
        }
    }

    fn find(&mut self, name: &'static str) -> Option<&'j Json> {
        self.taken.push(name);
        self.fields.get(name)
    }

    fn take(&mut self, name: &'static str) -> Result<&'j Json, TableError> {
        let found = self.find(name);
        found.ok_or_else(|| TableError::new(self.path(name), TableProblem::Missing))
    }

    fn path(&self, name: &str) -> String {
        format!("{}.{name}", self.at)
    }

    /// Are there fields that the format does not have?
    fn end(self) -> Result<(), TableError> {
        let unknown = self
            .fields
            .keys()
            .find(|name| !self.taken.contains(&name.as_str()));
        match unknown {
            Some(name) => Err(TableError::new(self.path(name), TableProblem::Unknown)),
            None => Ok(()),
        }
    }
}

fn array<'j>(json: &'j Json, at: &str) -> Result<&'j [Json], TableError> {
    match json {
        Json::Array(items) => Ok(items),
        _ => Err(TableError::new(at, TableProblem::Expected("an array"))),
    }
}

fn text<'j>(json: &'j Json, at: &str) -> Result<&'j str, TableError> {
    let text = json.as_str();
    text.ok_or_else(|| TableError::new(at, TableProblem::Expected("text")))
}

fn count(json: &Json, at: &str) -> Result<u64, TableError> {
    let count = json.as_u64();
    count.ok_or_else(|| TableError::new(at, TableProblem::Expected("an unsigned integer")))
}

fn flag(json: &Json, at: &str) -> Result<bool, TableError> {
    let flag = json.as_bool();
    flag.ok_or_else(|| TableError::new(at, TableProblem::Expected("true or false")))
}

fn hex(json: &Json, at: &str) -> Result<Vec<u8>, TableError> {
    unhex(text(json, at)?).ok_or_else(|| TableError::new(at, TableProblem::Expected("hex")))
}

/// Bytes from hex.
pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()
}

fn pair<'j>(json: &'j Json, at: &str) -> Result<(&'j Json, &'j Json), TableError> {
    match array(json, at)? {
        [first, second] => Ok((first, second)),
        _ => Err(TableError::new(at, TableProblem::Expected("two items"))),
    }
}

fn class_name(json: &Json, at: &str) -> Result<ClassName, TableError> {
    let (module, name) = pair(json, at)?;
    Ok(ClassName {
        module: text(module, at)?.to_owned(),
        name: text(name, at)?.to_owned(),
    })
}

fn float(json: &Json, at: &str) -> Result<u64, TableError> {
    let wrong = || TableError::new(at, TableProblem::Expected("a float with its bits"));
    let mut float = Object::of(json, at)?;
    float.take("float")?;
    let bits = text(float.take("bits")?, at)?;
    float.end()?;
    if bits.len() != 16 {
        return Err(wrong());
    }
    u64::from_str_radix(bits, 16).map_err(|_| wrong())
}

/// Code points as generalised UTF-8.
fn encode_points(points: &[Json], at: &str) -> Result<Vec<u8>, TableError> {
    let mut out = Vec::new();
    for point in points {
        let wrong = || TableError::new(at, TableProblem::Expected("code points"));
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
    fn datum(self, json: &Json, at: &str) -> Result<Datum, TableError> {
        let fields = match json {
            Json::Null => return Ok(Datum::None),
            Json::Bool(value) => return Ok(Datum::Bool(*value)),
            Json::String(text) => return Ok(Datum::Str(text.as_bytes().to_owned())),
            Json::Object(fields) => fields,
            _ => return Err(TableError::new(at, TableProblem::Expected("a value"))),
        };
        if fields.contains_key("float") {
            return float(json, at).map(Datum::Float);
        }
        let mut fields = fields.iter();
        let (Some((form, content)), None) = (fields.next(), fields.next()) else {
            return Err(TableError::new(
                at,
                TableProblem::Expected("one form of value"),
            ));
        };
        Ok(match form.as_str() {
            "int" => {
                let digits = text(content, at)?;
                let int = digits.parse();
                Datum::Int(int.map_err(|_| {
                    TableError::new(at, TableProblem::Expected("a decimal integer"))
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
                    _ => return Err(TableError::new(at, TableProblem::NoNode(number))),
                }
            }
            _ => {
                return Err(TableError::new(
                    at,
                    TableProblem::Expected("a known form of value"),
                ));
            }
        })
    }

    fn data(self, json: &Json, at: &str) -> Result<Vec<Datum>, TableError> {
        let items = array(json, at)?.iter().enumerate();
        items
            .map(|(index, item)| self.datum(item, &format!("{at}[{index}]")))
            .collect()
    }

    fn entries(self, json: &Json, at: &str) -> Result<Vec<(Datum, Datum)>, TableError> {
        let entry = |(index, entry): (usize, &Json)| {
            let at = format!("{at}[{index}]");
            let (key, value) = pair(entry, &at)?;
            Ok((self.datum(key, &at)?, self.datum(value, &at)?))
        };
        array(json, at)?.iter().enumerate().map(entry).collect()
    }

    fn node(self, json: &Json, at: &str) -> Result<Node, TableError> {
        let mut node = Object::of(json, at)?;
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

    fn body(self, kind: &str, node: &mut Object<'_>) -> Result<Body, TableError> {
        let data = |node: &mut Object<'_>, name| self.data(node.take(name)?, &node.path(name));
        let three = |node: &mut Object<'_>| {
            let args = data(node, "args")?;
            if args.len() == 3 {
                return Ok(args);
            }
            Err(TableError::new(
                node.path("args"),
                TableProblem::Expected("three values"),
            ))
        };
        let entries =
            |node: &mut Object<'_>, name| self.entries(node.take(name)?, &node.path(name));
        let class = |node: &mut Object<'_>| class_name(node.take("class")?, &node.path("class"));
        let optional = |node: &mut Object<'_>, name| {
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
            "dtype" => Body::Dtype(dtype(node.take("dtype")?, &node.path("dtype"))?),
            "ndarray" => Body::Ndarray {
                shape: counts(node.take("shape")?, &node.path("shape"))?,
                fortran: flag(node.take("fortran")?, &node.path("fortran"))?,
                dtype: dtype(node.take("dtype")?, &node.path("dtype"))?,
                elements: match node.find("items") {
                    Some(items) => Elements::Objects(self.data(items, &node.path("items"))?),
                    None => Elements::Raw(hex(node.take("hex")?, &node.path("hex"))?),
                },
            },
            other => {
                return Err(TableError::new(
                    node.path("t"),
                    TableProblem::NodeType(other.to_owned()),
                ));
            }
        })
    }

    fn named(self, json: &Json, at: &str) -> Result<Vec<(String, Datum)>, TableError> {
        let field = |(index, field): (usize, &Json)| {
            let at = format!("{at}[{index}]");
            let (name, value) = pair(field, &at)?;
            Ok((text(name, &at)?.to_owned(), self.datum(value, &at)?))
        };
        array(json, at)?.iter().enumerate().map(field).collect()
    }
}

fn counts(json: &Json, at: &str) -> Result<Vec<u64>, TableError> {
    array(json, at)?
        .iter()
        .map(|item| count(item, at))
        .collect()
}

/// Nests no deeper than the JSON reader lets JSON nest: 128 levels.
fn dtype(json: &Json, at: &str) -> Result<Dtype, TableError> {
    let mut object = Object::of(json, at)?;
    let of = if let Some(base) = object.find("base") {
        Dtype::Subarray {
            base: Box::new(dtype(base, &object.path("base"))?),
            shape: counts(object.take("shape")?, &object.path("shape"))?,
        }
    } else {
        let itemsize = count(object.take("itemsize")?, &object.path("itemsize"))?;
        let metadata = object
            .find("metadata")
            .map(|metadata| flag(metadata, &object.path("metadata")))
            .transpose()?
            .unwrap_or(false);
        let kind = text(object.take("kind")?, &object.path("kind"))?.to_owned();
        if let Some(fields) = object.find("fields") {
            Dtype::Struct {
                fields: dtype_fields(fields, &object.path("fields"))?,
                itemsize,
                aligned: flag(object.take("aligned")?, &object.path("aligned"))?,
                metadata,
            }
        } else {
            let unit = object.find("unit").map(|unit| {
                let at = object.path("unit");
                let (name, multiple) = pair(unit, &at)?;
                Ok((text(name, &at)?.to_owned(), count(multiple, &at)?))
            });
            Dtype::Plain {
                kind,
                text: text(object.take("str")?, &object.path("str"))?.to_owned(),
                itemsize,
                unit: unit.transpose()?,
                metadata,
            }
        }
    };
    object.end()?;
    Ok(of)
}

fn dtype_fields(json: &Json, at: &str) -> Result<Vec<DtypeField>, TableError> {
    let field = |(index, field): (usize, &Json)| {
        let at = format!("{at}[{index}]");
        let [name, title, offset, of] = array(field, &at)? else {
            return Err(TableError::new(at, TableProblem::Expected("four items")));
        };
        Ok(DtypeField {
            name: text(name, &at)?.to_owned(),
            title: match title {
                Json::Null => None,
                title => Some(text(title, &at)?.to_owned()),
            },
            offset: count(offset, &at)?,
            dtype: dtype(of, &at)?,
        })
    };
    array(json, at)?.iter().enumerate().map(field).collect()
}
