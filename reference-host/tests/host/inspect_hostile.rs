//! `agentix-host inspect` on files that mean harm.

use serde_json::json;

use super::inspect::{LIST, inspect, report};

#[tokio::test]
async fn depth_costs_no_stack() {
    let depth = 200_000;
    let mut deep = vec![b']'; depth];
    deep.extend(vec![b'a'; depth - 1]);
    deep.push(b'.');
    let text = inspect(&deep, &[]).await;
    assert_eq!(text.status, Some(0));
    assert!(text.stdout.lines().count() < 250);
    let found = report(&deep, &[]).await;
    assert_eq!(found["status"], 0);
    let value = &found["streams"][0]["value"];
    assert_eq!(value["nodes"].as_array().unwrap().len(), 200);
    assert_eq!(value["nodes_left_out"], depth - 200);
    assert_eq!(value["nodes"][199]["items"][0], json!({"left_out": "list"}));

    // All of it is shown in a size that follows the size of the file.
    let text = inspect(&deep, &["--all"]).await;
    assert!(text.stdout.lines().count() > depth);
    assert!(text.stdout.len() < 200 * depth);
}

#[tokio::test]
async fn what_is_left_out_is_counted() {
    let mut wide = b"(".to_vec();
    wide.extend(vec![b'N'; 5000]);
    wide.extend(b"l.");
    let value = report(&wide, &[]).await["streams"][0]["value"].clone();
    assert_eq!(value["nodes"][0]["items"].as_array().unwrap().len(), 20);
    assert_eq!(value["nodes"][0]["left_out"], 4980);
    let value = report(&wide, &["--all"]).await["streams"][0]["value"].clone();
    assert_eq!(value["nodes"][0]["items"].as_array().unwrap().len(), 5000);
    assert_eq!(value["nodes"][0].get("left_out"), None);

    let found = report(&wide, &["--opcodes", "--max-lines", "50"]).await;
    assert_eq!(found["streams"][0]["opcodes"].as_array().unwrap().len(), 50);
    assert_eq!(found["streams"][0]["opcodes_left_out"], 5003 - 50);

    let names: Vec<u8> = (0..300)
        .flat_map(|at| format!("cm\nn{at}\n0").into_bytes())
        .collect();
    let found = report(&[&names[..], b"N."].concat(), &[]).await;
    assert_eq!(found["streams"][0]["globals_left_out"], 100);
    assert_eq!(
        (&found["refused_left_out"], &found["status"]),
        (&json!(100), &json!(1))
    );

    let many = b"N.".repeat(300);
    let found = report(&many, &[]).await;
    assert_eq!(found["streams"].as_array().unwrap().len(), 200);
    assert_eq!(
        (&found["streams_left_out"], &found["status"]),
        (&json!(100), &json!(0))
    );

    // What is not shown counts all the same.
    let hidden = [&many[..], b"cos\nsystem\n."].concat();
    let found = report(&hidden, &["--max-lines", "10"]).await;
    assert_eq!(
        (&found["status"], &found["refused"][0]["offset"]),
        (&json!(1), &json!(600))
    );

    let long = [
        b"\x8d\x10\x27\0\0\0\0\0\0".as_slice(),
        &[b'a'; 10_000],
        b".",
    ]
    .concat();
    let root = report(&long, &[]).await["streams"][0]["value"]["root"].clone();
    assert_eq!(
        (root["text"].as_str().unwrap().len(), &root["left_out"]),
        (80, &json!(9920))
    );
    let root = report(&long, &["--all"]).await["streams"][0]["value"]["root"].clone();
    assert_eq!(root.as_str().unwrap().len(), 10_000);
}

#[tokio::test]
async fn nothing_but_words_reaches_the_terminal() {
    let evil = "\u{1b}[2J\r\u{7f}\u{9b}1m\u{202e}\u{200b}\u{2066}\u{feff}";
    let mut pickle = b"(".to_vec();
    let push = |pickle: &mut Vec<u8>| {
        pickle.extend([0x8c, evil.len() as u8]);
        pickle.extend(evil.as_bytes());
    };
    // A str, a key, a name, a persistent id, bytes, and what follows the STOP.
    push(&mut pickle);
    push(&mut pickle);
    push(&mut pickle);
    pickle.push(0x93);
    push(&mut pickle);
    pickle.push(b'Q');
    pickle.push(b'}');
    push(&mut pickle);
    pickle.extend(b"Ns");
    pickle.extend([b'C', evil.len() as u8]);
    pickle.extend(evil.as_bytes());
    pickle.extend([b'P']);
    pickle.extend(evil.replace('\n', "").as_bytes());
    pickle.extend(b"\nt.");
    pickle.extend(evil.as_bytes());
    for options in [&["--opcodes", "--all"][..], &["--opcodes", "--json"]] {
        let ended = inspect(&pickle, options).await;
        assert_eq!(ended.status, Some(1), "{}", ended.stdout);
        let raw = |c: char| c != '\n' && (c.is_control() || evil.contains(c) && !c.is_ascii());
        assert!(!ended.stdout.contains(raw), "{:?}", ended.stdout);
    }
    // What JSON says is still what the stream says.
    let found = report(&pickle, &[]).await;
    assert_eq!(found["streams"][0]["value"]["nodes"][0]["items"][0], evil);
}

#[tokio::test]
async fn small_files_with_large_bills_are_refused_soon() {
    // Nested tuples that double as a key; a declared size; a memo index; a frame.
    let mut doubling = b"}N".to_vec();
    doubling.extend(b"2\x86".repeat(60));
    doubling.extend(b"Ns.");
    // One stream after another, each with work for a thousand times its size.
    let costly = [b"}N", &b"2\x86".repeat(15)[..], b"Ns0N."].concat();
    let repeated = [b"N.", &costly.repeat(300)[..]].concat();
    // A name of 100,000 characters, 200 times.
    let mut names = b"\x80\x04X\xa0\x86\x01\0".to_vec();
    names.extend(vec![b'm'; 100_000]);
    names.extend(b"\x940");
    for at in 0..200_u32 {
        names.extend(b"h\0X\x04\0\0\0");
        names.extend(format!("{at:04}").as_bytes());
        names.extend(b"\x930");
    }
    names.extend(b"N.");
    for (pickle, statuses) in [
        (&doubling[..], [3, 3]),
        (b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f", [3, 3]),
        (b"Nr\xff\xff\xff\xff.", [0, 0]),
        (b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xff.", [3, 3]),
        (&repeated, [3, 3]),
        (&names, [1, 3]),
    ] {
        let found = report(pickle, &[]).await;
        let status = found["status"].as_u64().unwrap();
        assert!(statuses.contains(&status), "{found}");
        assert!(found.to_string().len() < 300_000);
        assert!(inspect(pickle, &[]).await.stdout.len() < 300_000);
    }
    // A few such streams are no harm.
    let few = [LIST, &costly.repeat(5)[..]].concat();
    assert_eq!(report(&few, &[]).await["status"], 0);
    // More objects than allowed.
    let found = report(b"(K\x01K\x02K\x03t.", &["--max-objects", "3"]).await;
    assert_eq!(found["streams"][0]["error"]["kind"], "limit");
    assert_eq!(found["status"], 3);
}

#[tokio::test]
async fn a_dtype_that_is_told_in_many_places_is_told_once() {
    // Structures of two fields that lie at the same place and are the same structure, 30 deep.
    let mut pickle = b"\x80\x04".to_vec();
    let push_dtype = |pickle: &mut Vec<u8>, name: &str| {
        pickle.extend(b"cnumpy\ndtype\n(\x8c");
        pickle.push(name.len() as u8);
        pickle.extend(name.as_bytes());
        pickle.extend(b"\x89\x88tR");
    };
    push_dtype(&mut pickle, "i1");
    pickle.extend(b"(K\x03\x8c\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tbq\0");
    for level in 1..30_u8 {
        push_dtype(&mut pickle, "V1");
        // (3, '|', None, ('a', 'b'), {'a': (inner, 0), 'b': (inner, 0)}, 1, 1, 16)
        pickle.extend(b"(K\x03\x8c\x01|N\x8c\x01a\x8c\x01b\x86}(\x8c\x01ah");
        pickle.extend([level - 1]);
        pickle.extend(b"K\0\x86\x8c\x01bh");
        pickle.extend([level - 1]);
        pickle.extend(b"K\0\x86uK\x01K\x01K\x10tbq");
        pickle.extend([level]);
    }
    pickle.push(b'.');
    let found = report(&pickle, &["--all"]).await;
    assert_eq!(found["status"], 0, "{}", found["streams"][0]["refusal"]);
    let text = inspect(&pickle, &["--all"]).await.stdout;
    assert!(text.lines().count() < 200, "{}", text.lines().count());
    assert!(found.to_string().len() < 3_000_000);
}
