//! numpy's objects made by hand.

use super::super::super::arena::NodeId;
use super::super::super::builder::{BuildError, Builder};
use super::super::super::error::Malformed;
use super::dtype::DtypeLabel;
use super::element::Element;
use super::rule::NumpyRule;

impl From<NumpyRule> for BuildError {
    fn from(rule: NumpyRule) -> Self {
        Malformed::Numpy(rule).into()
    }
}

/// A name of a dtype taken apart.
struct Parts<'t> {
    order: &'t str,
    /// By kind and size; byte order and unit are not set.
    label: DtypeLabel,
    /// The count and the name of a unit.
    unit: Option<(u32, &'t str)>,
}

fn parts(typestr: &str) -> Option<Parts<'_>> {
    let (order, rest) = typestr.split_at_checked(1)?;
    let (name, unit) = match rest.split_once('[') {
        Some((name, unit)) => (name, Some(unit.strip_suffix(']')?)),
        None => (rest, None),
    };
    let label = DtypeLabel::from_name(name.as_bytes())?;
    let unit = match (unit, label.kind.is_counted()) {
        (None, false) => None,
        (None, true) => Some((1, "generic")),
        (Some(_), false) => return None,
        (Some(unit), true) => {
            let digits = unit.len() - unit.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (count, name) = unit.split_at(digits);
            let count = if count.is_empty() {
                1
            } else {
                count.parse().ok()?
            };
            Some((count, name))
        }
    };
    Some(Parts { order, label, unit })
}

impl Builder {
    /// A numpy dtype by the name that numpy calls `dtype.str`: byte order, kind and size, and for dates
    /// and durations their unit, such as `<f8`, `|S5` or `<M8[25s]`. Structures and subarrays are
    /// made with [`Builder::call`] and [`Builder::build`], as in a stream.
    ///
    /// # Errors
    ///
    /// [`BuildError::Rule`] if the name is not of this form.
    pub fn dtype(&mut self, typestr: &str) -> Result<NodeId, BuildError> {
        let Parts { order, label, unit } = parts(typestr).ok_or(NumpyRule::TypeString)?;
        let class = self.global("numpy", "dtype")?;
        let name = self.str(&label.name())?;
        let (align, copy) = (self.bool(false)?, self.bool(true)?);
        let dtype = self.call(class, &[name, align, copy])?;

        let none = self.none()?;
        let sizes = if label.kind.is_flexible() {
            [label.itemsize.into(), label.alignment.into()]
        } else {
            [-1_i64, -1]
        };
        let mut state = vec![
            self.int(if unit.is_some() { 4 } else { 3 })?,
            self.str(order)?,
            none,
            none,
            none,
            self.int(sizes[0])?,
            self.int(sizes[1])?,
            self.int(label.flags)?,
        ];
        if let Some((count, unit)) = unit {
            let one = self.int(1)?;
            let unit = [self.bytes(unit.as_bytes())?, self.int(count)?, one, one];
            let unit = self.tuple(&unit)?;
            state.push(self.tuple(&[none, unit])?);
        }
        let state = self.tuple(&state)?;
        self.build(dtype, state)?;
        Ok(dtype)
    }

    /// A numpy array of numbers, given in row-first order.
    ///
    /// # Errors
    ///
    /// [`BuildError::Rule`] if there are not as many values as the shape says, or more than 64
    /// dimensions.
    pub fn ndarray<T: Element>(
        &mut self,
        shape: &[u64],
        values: &[T],
    ) -> Result<NodeId, BuildError> {
        let dtype = self.dtype(T::TYPESTR)?;
        let mut data = Vec::with_capacity(T::SIZE * values.len());
        for value in values {
            value.write(&mut data);
        }
        let data = self.bytes(&data)?;
        self.array_of(shape, dtype, data)
    }

    /// A numpy array of Python objects, given in row-first order.
    ///
    /// # Errors
    ///
    /// As for [`Builder::ndarray`].
    pub fn object_ndarray(
        &mut self,
        shape: &[u64],
        items: &[NodeId],
    ) -> Result<NodeId, BuildError> {
        let dtype = self.dtype("|O8")?;
        let list = self.list()?;
        for item in items {
            self.append(list, *item)?;
        }
        self.array_of(shape, dtype, list)
    }

    /// An array in row-first order over bytes, or the objects of a list.
    fn array_of(
        &mut self,
        shape: &[u64],
        dtype: NodeId,
        data: NodeId,
    ) -> Result<NodeId, BuildError> {
        let reconstruct = self.global("numpy._core.multiarray", "_reconstruct")?;
        let class = self.global("numpy", "ndarray")?;
        let zero = self.int(0)?;
        let empty = self.tuple(&[zero])?;
        let code = self.bytes(b"b")?;
        let array = self.call(reconstruct, &[class, empty, code])?;

        let dimensions: Result<Vec<NodeId>, BuildError> =
            shape.iter().map(|dimension| self.int(*dimension)).collect();
        let shape = self.tuple(&dimensions?)?;
        let (version, is_fortran) = (self.int(1)?, self.bool(false)?);
        let state = self.tuple(&[version, shape, dtype, is_fortran, data])?;
        self.build(array, state)?;
        Ok(array)
    }
}
