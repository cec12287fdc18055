//! What a value is made of, whatever its kind, in the order in which it is shown.

use agentix_protocol::safepickle::numpy::{Dtype, Ndarray, NumpyScalar};
use agentix_protocol::safepickle::{Entries, Exception, Items, Kind, Origin, Text, Value};

/// Parts of one sort.
#[derive(Clone, Copy)]
pub(super) enum Group<'d> {
    /// A single part, by its name.
    One(&'static str, Value<'d>),
    /// Numbered parts, by what they are; items of a container have no name.
    Items(&'static str, Items<'d>),
    /// Keys and values.
    Entries(Keys, Entries<'d>),
    /// Named parts: the fields of an exception.
    Fields(Exception<'d>),
    /// The fields of a structure.
    DtypeFields(Dtype<'d>),
}

/// What the keys of entries are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// Keys of a dict.
    Dict,
    /// Names of attributes.
    Attributes,
    /// Names of arguments.
    Keywords,
    /// What the sender attached to a dtype.
    Metadata,
}

/// What a part is to its whole.
#[derive(Clone, Copy)]
pub(super) enum Label<'d> {
    Name(&'static str),
    Item(&'static str, usize),
    /// A field of a structure, and where it lies.
    DtypeField(Text<'d>, u32),
    Key(Keys, Value<'d>),
}

impl<'d> Group<'d> {
    pub(super) fn len(self) -> usize {
        match self {
            Self::One(..) => 1,
            Self::Items(_, items) => items.len(),
            Self::Entries(_, entries) => entries.len(),
            Self::Fields(exception) => exception.fields().len(),
            Self::DtypeFields(dtype) => dtype.fields().map_or(0, |fields| fields.len()),
        }
    }

    pub(super) fn at(self, index: usize) -> Option<(Label<'d>, Value<'d>)> {
        match self {
            Self::One(name, value) => (index == 0).then_some((Label::Name(name), value)),
            Self::Items(name, items) => Some((Label::Item(name, index), items.at(index)?)),
            Self::Entries(keys, entries) => {
                let (key, value) = entries.at(index)?;
                Some((Label::Key(keys, key), value))
            }
            Self::Fields(exception) => {
                let (name, value) = exception.fields().nth(index)?;
                Some((Label::Name(name), value))
            }
            Self::DtypeFields(dtype) => {
                let field = dtype.fields()?.nth(index)?;
                let label = Label::DtypeField(field.name, field.offset);
                Some((label, field.dtype.value()))
            }
        }
    }
}

/// The parts of a value; none for those that are shown as a whole.
pub(super) fn groups(value: Value<'_>) -> Vec<Group<'_>> {
    let mut groups = Vec::new();
    match value.kind() {
        Kind::List => groups.extend(value.list().map(|items| Group::Items("", items))),
        Kind::Tuple => groups.extend(value.tuple().map(|items| Group::Items("", items))),
        Kind::Set => groups.extend(value.set().map(|items| Group::Items("", items))),
        Kind::Frozenset => groups.extend(value.frozenset().map(|items| Group::Items("", items))),
        Kind::Deque => groups.extend(value.deque().map(|deque| Group::Items("", deque.items))),
        Kind::Dict | Kind::OrderedDict | Kind::Counter | Kind::DefaultDict => {
            let factory = value.default_factory();
            groups.extend(factory.map(|factory| Group::One("default factory", factory)));
            groups.extend(
                value
                    .entries()
                    .map(|entries| Group::Entries(Keys::Dict, entries)),
            );
        }
        Kind::Slice => {
            if let Some(slice) = value.slice() {
                groups.push(Group::One("start", slice.start));
                groups.push(Group::One("stop", slice.stop));
                groups.push(Group::One("step", slice.step));
            }
        }
        Kind::Time | Kind::Datetime => {
            // A timezone is shown with the time itself.
            let time = value.time().or(value.datetime().map(|at| at.time));
            let tzinfo = time.and_then(|time| time.tzinfo);
            let tzinfo = tzinfo.filter(|tzinfo| tzinfo.kind() != Kind::Timezone);
            groups.extend(tzinfo.map(|tzinfo| Group::One("tzinfo", tzinfo)));
        }
        Kind::Exception => {
            if let Some(exception) = value.exception() {
                groups.push(Group::Items("argument", exception.args()));
                groups.push(Group::Fields(exception));
            }
        }
        Kind::Dtype => groups.extend(value.dtype().into_iter().flat_map(dtype_groups)),
        Kind::Ndarray => {
            if let Some(array) = value.ndarray() {
                groups.extend(array_groups(array));
            }
        }
        Kind::NumpyScalar => {
            let array = value.numpy_scalar().and_then(NumpyScalar::array);
            groups.extend(array.into_iter().flat_map(array_groups));
        }
        Kind::Record => record_groups(value, &mut groups),
        _ => {}
    }
    if value.kind() != Kind::Record {
        let attrs = value.attrs();
        groups.extend(attrs.map(|attrs| Group::Entries(Keys::Attributes, attrs)));
    }
    groups.retain(|group| group.len() > 0);
    groups
}

/// The dtype where one line does not tell all of it, and the elements if they are objects.
fn array_groups(array: Ndarray<'_>) -> impl Iterator<Item = Group<'_>> {
    let dtype = array.dtype();
    let dtype = (!dtype_groups(dtype).is_empty()).then(|| Group::One("dtype", dtype.value()));
    let items = array.items().map(|items| Group::Items("", items));
    dtype.into_iter().chain(items)
}

/// What one line does not tell of a dtype.
fn dtype_groups(dtype: Dtype<'_>) -> Vec<Group<'_>> {
    let mut groups = Vec::new();
    if dtype.fields().is_some() {
        groups.push(Group::DtypeFields(dtype));
    }
    let subarray = dtype.subarray();
    groups.extend(subarray.map(|subarray| Group::One("base", subarray.base().value())));
    let metadata = dtype.metadata();
    groups.extend(metadata.map(|metadata| Group::Entries(Keys::Metadata, metadata)));
    groups.retain(|group| group.len() > 0);
    groups
}

fn record_groups<'d>(value: Value<'d>, groups: &mut Vec<Group<'d>>) {
    let Some(record) = value.record() else {
        return;
    };
    // The name of a class stands in the line of the record itself.
    if let Some(class) = record.class().filter(|class| class.global().is_none()) {
        groups.push(Group::One(callee(record.origin()), class));
    }
    groups.push(Group::Items("argument", record.args()));
    let kwargs = record.kwargs();
    groups.extend(kwargs.map(|kwargs| Group::Entries(Keys::Keywords, kwargs)));
    // Attributes are a reading of the states; if they tell all, the states are left out.
    match (record.attrs(), record.states()) {
        (Some(attrs), Some(states)) if states.len() == 1 => {
            groups.push(Group::Entries(Keys::Attributes, attrs));
        }
        (_, states) => groups.extend(states.map(|states| Group::Items("state", states))),
    }
    let appended = record.items();
    groups.extend(appended.map(|items| Group::Items("appended", items)));
    let entries = record.entries();
    groups.extend(entries.map(|entries| Group::Entries(Keys::Dict, entries)));
}

fn callee(origin: Origin) -> &'static str {
    match origin {
        Origin::State => "object",
        _ => "callee",
    }
}

/// Whether it matters that two references are to one object, as the vectors have it; and for dtypes with
/// parts, which many others may refer to.
pub(super) fn has_identity(value: Value<'_>) -> bool {
    match value.kind() {
        Kind::List
        | Kind::Dict
        | Kind::Set
        | Kind::Bytearray
        | Kind::OrderedDict
        | Kind::Counter
        | Kind::DefaultDict
        | Kind::Deque
        | Kind::Exception
        | Kind::Record
        | Kind::Ndarray
        | Kind::Slice => true,
        Kind::Dtype => !groups(value).is_empty(),
        Kind::Tuple => value.tuple().is_some_and(|items| !items.is_empty()),
        Kind::Frozenset => value.frozenset().is_some_and(|items| !items.is_empty()),
        _ => false,
    }
}
