//! Documents made by hand, and copies of values.

#![allow(clippy::unwrap_used)]

use agentix_protocol::safepickle::{
    self, BuildError, Builder, Decoder, Document, Kind, Limits, Malformed, NodeId, Policy,
};

fn built(make: impl FnOnce(&mut Builder) -> Result<NodeId, BuildError>) -> Document<'static> {
    let mut builder = Builder::new();
    let root = make(&mut builder).unwrap();
    builder.finish(root).unwrap()
}

fn decode(stream: &[u8]) -> Document<'_> {
    let policy = Policy::agentix().allow("app", "Point");
    Decoder::new(policy, Limits::default())
        .decode(stream)
        .unwrap_or_else(|error| panic!("{}: {error}", stream.escape_ascii()))
}

#[test]
fn containers_of_collections_are_those_of_a_stream() {
    let document = built(|b| {
        let (one, two, key) = (b.int(1)?, b.int(2)?, b.str("a")?);
        let ordered = b.ordered_dict()?;
        b.insert(ordered, key, one)?;
        b.insert(ordered, key, two)?;
        let counter = b.counter()?;
        b.insert(counter, key, two)?;
        let list = b.global("builtins", "list")?;
        let default = b.default_dict(Some(list))?;
        b.insert(default, one, list)?;
        let deque = b.deque(Some(1))?;
        b.append(deque, one)?;
        b.append(deque, two)?;
        let set = b.set(&[])?;
        b.add(set, one)?;
        b.add(set, one)?;
        b.tuple(&[ordered, counter, default, deque, set])
    });
    let stream = b"\x80\x04(\
        ccollections\nOrderedDict\n)R\x8c\x01aK\x02s\
        ccollections\nCounter\n}\x8c\x01aK\x02s\x85R\
        ccollections\ndefaultdict\ncbuiltins\nlist\n\x85RK\x01cbuiltins\nlist\ns\
        ccollections\ndeque\n)K\x01\x86R(K\x01K\x02e\
        \x8f(K\x01\x90t.";
    assert_eq!(document, decode(stream));
    let printed = "(OrderedDict({'a': 2}), Counter({'a': 2}), \
        defaultdict(<class builtins.list>, {1: <class builtins.list>}), deque([2], maxlen=1), {1})";
    assert_eq!(format!("{document:?}"), printed);
}

#[test]
fn calls_states_and_keywords_make_records() {
    let document = built(|b| {
        let (one, two, x) = (b.int(1)?, b.int(2)?, b.str("x")?);
        let plain = b.record("app", "Point", &[("x", one), ("y", two)])?;
        let class = b.global("app", "Point")?;
        let called = b.call(class, &[one, two])?;
        b.append(called, two)?;
        b.insert(called, x, plain)?;
        let keyed = b.new_object(class, &[one], &[(x, two)])?;
        b.tuple(&[plain, called, keyed])
    });
    let stream =
        b"\x80\x04\x8c\x03app\x8c\x05Point\x93q\x00)\x81}(\x8c\x01xK\x01\x8c\x01yK\x02ubq\x01\
        h\x00K\x01K\x02\x86RK\x02a\x8c\x01xh\x01s\
        h\x00K\x01\x85}\x8c\x01xK\x02s\x92\x87.";
    assert_eq!(document, decode(stream));
    let printed = "(<record app.Point {'x': 1, 'y': 2}>, \
        <record app.Point(1, 2) items=[2] entries={'x': <record app.Point {'x': 1, 'y': 2}>}>, \
        <record app.Point(1, **{'x': 2})>)";
    assert_eq!(format!("{document:?}"), printed);
}

#[test]
fn what_the_decoder_refuses_is_refused() {
    let mut builder = Builder::new();
    let (one, list) = (builder.int(1).unwrap(), builder.list().unwrap());
    assert_eq!(
        builder.range(0, 5, 0),
        Err(BuildError::Rule(Malformed::Arguments))
    );
    assert_eq!(
        builder.append(one, one),
        Err(BuildError::WrongKind {
            expected: "list",
            found: Kind::Int
        })
    );
    assert_eq!(
        builder.set(&[list]),
        Err(BuildError::Unhashable(Kind::List))
    );
    assert_eq!(
        builder.default_dict(Some(one)),
        Err(BuildError::WrongKind {
            expected: Kind::Global.name(),
            found: Kind::Int
        })
    );
    assert_eq!(
        builder.build(one, one),
        Err(BuildError::Rule(Malformed::NoState(Kind::Int)))
    );
    let mut other = Builder::new();
    assert!(matches!(
        other.tuple(&[list]),
        Err(BuildError::UnknownNode(_))
    ));
    let class = other.global("agentix.bash", "BashResult").unwrap();
    let unbuilt = other.new_object(class, &[], &[]).unwrap();
    assert_eq!(
        other.finish(unbuilt).map(|_| ()),
        Err(BuildError::Rule(Malformed::Unbuilt))
    );
}

/// A number of each object from the order of a walk, so that two values are told apart by what they
/// share.
fn shape(document: &Document<'_>) -> String {
    let mut numbers = std::collections::HashMap::new();
    let mut pending = vec![document.root()];
    let mut shape = String::new();
    while let Some(value) = pending.pop() {
        let next = numbers.len();
        let number = *numbers.entry(value.id()).or_insert(next);
        shape += &format!("{number}{} ", value.kind());
        if number == next {
            let items = [
                value.list(),
                value.tuple(),
                value.deque().map(|deque| deque.items),
            ];
            pending.extend(items.into_iter().flatten().flat_map(|items| items.iter()));
            let entries = [value.entries(), value.attrs()];
            let entries = entries
                .into_iter()
                .flatten()
                .flat_map(|entries| entries.iter());
            pending.extend(entries.flat_map(|(key, value)| [key, value]));
        }
    }
    shape
}

#[test]
fn copies_equal_their_originals_and_share_what_they_share() {
    let streams: [&[u8]; 6] = [
        // [None, True, 5, 1.5, "é", b"x", (), {"a": (1, {})}].
        b"\x80\x04](N\x88K\x05G\x3f\xf8\0\0\0\0\0\0\x8c\x02\xc3\xa9C\x01x)}\x8c\x01aK\x01}\x86se.",
        // A list that holds itself.
        b"\x80\x04]\x94h\0a.",
        // A tuple that holds a list that holds the tuple.
        b"\x80\x04]\x94h\0\x85\x94h\0h\x01a0h\x01.",
        // A record whose attribute is a deque that holds the record and its class twice.
        b"\x80\x04capp\nPoint\n\x94)\x81\x94}\x8c\x01xccollections\ndeque\n)R(h\x01h\x00h\x00esb.",
        // A range, a slice and big ints.
        b"\x80\x04cbuiltins\nrange\nK\x01\x8a\x09\0\0\0\0\0\0\0\0\x01K\x02\x87Rcbuiltins\nslice\nNK\x02N\x87R\x86.",
        // One str twice, and sets.
        b"\x80\x04](\x8c\x02ab\x94h\x00\x8f(h\x00K\x02\x90(h\x00\x91e.",
    ];
    for stream in streams {
        let document = decode(stream);
        let mut builder = Builder::new();
        let one = builder.copy(document.root()).unwrap();
        let two = builder.copy(document.root()).unwrap();
        assert_ne!(one, two);
        let copy = builder.finish(one).unwrap();
        assert_eq!(copy, document);
        assert_eq!(shape(&copy), shape(&document));
    }
}

#[test]
fn a_copy_can_be_added_to() {
    let document = safepickle::decode(b"\x80\x04}(\x8c\x01aK\x01\x8c\x01bK\x02u.").unwrap();
    let copied = built(|b| {
        let dict = b.copy(document.root())?;
        let (key, value) = (b.str("b")?, b.int(3)?);
        b.insert(dict, key, value)?;
        let key = b.str("c")?;
        b.insert(dict, key, dict)?;
        Ok(dict)
    });
    assert_eq!(format!("{copied:?}"), "{'a': 1, 'b': 3, 'c': <cycle>}");
}
