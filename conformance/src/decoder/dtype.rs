//! numpy dtypes, as the tables of vectors have them.

use serde_json::Value as Json;

use super::fields::{FieldError, FieldProblem, Fields, array, count, counts, flag, pair, text};

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

/// Reads a dtype. It nests no deeper than the JSON reader lets JSON nest: 128 levels.
pub(super) fn read(json: &Json, at: &str) -> Result<Dtype, FieldError> {
    let mut object = Fields::of(json, at)?;
    let of = if let Some(base) = object.find("base") {
        Dtype::Subarray {
            base: Box::new(read(base, &object.path("base"))?),
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
        if let Some(members) = object.find("fields") {
            if kind != "V" {
                let at = object.path("kind");
                return Err(FieldError::new(at, FieldProblem::Expected("V")));
            }
            Dtype::Struct {
                fields: fields(members, &object.path("fields"))?,
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

fn fields(json: &Json, at: &str) -> Result<Vec<DtypeField>, FieldError> {
    let field = |(index, field): (usize, &Json)| {
        let at = format!("{at}[{index}]");
        let [name, title, offset, of] = array(field, &at)? else {
            return Err(FieldError::new(at, FieldProblem::Expected("four items")));
        };
        Ok(DtypeField {
            name: text(name, &at)?.to_owned(),
            title: match title {
                Json::Null => None,
                title => Some(text(title, &at)?.to_owned()),
            },
            offset: count(offset, &at)?,
            dtype: read(of, &at)?,
        })
    };
    array(json, at)?.iter().enumerate().map(field).collect()
}
