//! numpy's objects.

use agentix_protocol::safepickle::numpy::Dtype;
use agentix_protocol::safepickle::{Kind, Value};
use data_encoding::BASE64;

use super::super::numpy::{DtypeObject, MOST_PARTS, Number, has_numbers, number};
use super::super::to_line;
use super::{JsonError, Tasks, Writer, items};

impl Writer {
    /// `"<f8"`, or an object for what has parts.
    pub(super) fn dtype(&mut self, dtype: Dtype<'_>) -> Option<()> {
        if dtype.fields().is_some() || dtype.subarray().is_some() {
            // It has nothing but strings for keys.
            let object = to_line(&DtypeObject(dtype, MOST_PARTS)).ok()?;
            self.out.push_str(&object);
        } else {
            self.written(&dtype.typestr());
        }
        Some(())
    }

    pub(super) fn array<'d>(
        &mut self,
        value: Value<'d>,
        depth: usize,
        tasks: &mut Tasks<'d>,
    ) -> Result<(), JsonError> {
        let kind = JsonError::Kind(Kind::Ndarray);
        let array = value.ndarray().ok_or(kind)?;
        let dtype = array.dtype();
        self.out.push_str("{\"$ndarray\": {\"dtype\": ");
        self.dtype(dtype).ok_or(kind)?;
        let shape = array.shape().map(|dimension| dimension.to_string());
        let shape = shape.collect::<Vec<_>>().join(", ");
        self.out.push_str(&format!(", \"shape\": [{shape}]"));
        if let Some(objects) = array.items() {
            items(", \"items\": [", objects, "]}}", depth, tasks);
        } else if has_numbers(dtype) {
            self.left = self
                .left
                .checked_sub(array.len())
                .ok_or(JsonError::TooLarge)?;
            self.out.push_str(", \"elements\": [");
            for (i, element) in array.elements().ok_or(kind)?.enumerate() {
                if i > 0 {
                    self.out.push_str(", ");
                }
                self.number(number(dtype, element).ok_or(kind)?);
            }
            self.out.push_str("]}}");
        } else {
            let data = array.row_first().ok_or(kind)?;
            self.out.push_str(", \"data\": \"");
            BASE64.encode_append(&data, &mut self.out);
            self.out.push_str("\"}}");
        }
        Ok(())
    }

    pub(super) fn scalar<'d>(
        &mut self,
        value: Value<'d>,
        depth: usize,
        tasks: &mut Tasks<'d>,
    ) -> Option<()> {
        let scalar = value.numpy_scalar()?;
        if let Some(text) = scalar.text() {
            self.written(&text);
            return Some(());
        }
        if let Some(number) = scalar.data().and_then(|data| number(scalar.dtype(), data)) {
            self.number(number);
            return Some(());
        }
        self.out.push_str("{\"$scalar\": {\"dtype\": ");
        self.dtype(scalar.dtype())?;
        match scalar.data() {
            Some(data) => {
                self.out.push_str(", \"data\": \"");
                BASE64.encode_append(data, &mut self.out);
                self.out.push_str("\"}}");
            }
            None => items(
                ", \"items\": [",
                scalar.array()?.items()?,
                "]}}",
                depth,
                tasks,
            ),
        }
        Some(())
    }

    fn number(&mut self, number: Number) {
        match number {
            Number::Bool(bool) => self.out.push_str(if bool { "true" } else { "false" }),
            Number::Int(int) => self.out.push_str(&int.to_string()),
            Number::Uint(int) => self.out.push_str(&int.to_string()),
            Number::Single(float) if float.is_finite() => {
                self.out.push_str(&format!("{float:?}"));
            }
            Number::Single(float) => self.float(float.into()),
            Number::Double(float) => self.float(float),
        }
    }
}
