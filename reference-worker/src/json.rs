//! Plain JSON arguments of a plugin's event, as msgpack (AGX-SIDE-033).

use agentix_protocol::codec::Writer;
use bytes::Bytes;
use serde_json::Value;

/// The msgpack form of an argument; nil where there is none.
pub(crate) fn to_msgpack(argument: Option<&Value>) -> Bytes {
    let mut writer = Writer::default();
    write(&mut writer, argument.unwrap_or(&Value::Null));
    writer.into_vec().into()
}

/// Recursion ends where the parser's does: at 128 nested values.
fn write(w: &mut Writer, value: &Value) {
    match value {
        Value::Null => w.nil(),
        Value::Bool(value) => w.bool(*value),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => w.uint(value),
            (None, Some(value)) => w.int(value),
            // A number that is no integer of 64 bits is a float in this build of the parser.
            (None, None) => w.f64(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => w.str(text),
        Value::Array(items) => {
            w.array(items.len());
            for item in items {
                write(w, item);
            }
        }
        Value::Object(entries) => {
            w.map(entries.len());
            for (key, item) in entries {
                w.str(key);
                write(w, item);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value() {
        let json: Value = serde_json::from_str(
            r#"[null, true, 5, -5, 18446744073709551615, 0.5, "é", {"a": []}]"#,
        )
        .unwrap();
        assert_eq!(
            to_msgpack(Some(&json))[..],
            [
                b"\x98\xc0\xc3\x05\xfb\xcf\xff\xff\xff\xff\xff\xff\xff\xff".as_slice(),
                b"\xcb\x3f\xe0\0\0\0\0\0\0\xa2\xc3\xa9\x81\xa1a\x90",
            ]
            .concat()
        );
        assert_eq!(to_msgpack(None)[..], [0xc0]);
    }
}
