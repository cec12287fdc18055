//! What a typed call refuses at compile time.

#[test]
fn typed_calls() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/fail_*.rs");
}
