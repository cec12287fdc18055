//! A remote function as an item: one declaration gives the target, the arguments and the result.
//!
//! [`remote!`](crate::remote!) declares functions. A declaration with a target stands for a function that lives
//! elsewhere, in a Python module say; one with a body can be registered in a Rust worker, and its
//! target follows from where it stands. Either way the declared name is a type whose fields are
//! the arguments, so that an editor completes them and a wrong type does not compile.
//!
//! ```
//! use std::collections::BTreeMap;
//! use agentix_protocol::remote::{self, RemoteFn};
//!
//! agentix_protocol::remote! {
//!     /// Lives in Python: `async def run(input: str) -> dict[str, str]` in app.py.
//!     pub fn run(input: String) -> BTreeMap<String, String> = "app::run";
//!
//!     /// Lives in Rust; its target is the path of this module and its name.
//!     pub async fn shout(input: String) -> String { input.to_uppercase() }
//!
//!     /// Arguments before `/` travel by position, the others by name.
//!     pub fn pow(base: i64, exponent: i64, /, modulus: Option<i64>) -> i64 = "builtins::pow";
//! }
//!
//! assert_eq!(run::target()?.as_str(), "app::run");
//! assert!(shout::target()?.as_str().ends_with("::shout"));
//! let call = run { input: "hello".into() };
//! // What travels: the pickle of ((), {"input": "hello"}).
//! let bytes = remote::encode_arguments(&call)?;
//! let document = agentix_protocol::safepickle::decode(&bytes)?;
//! let back: run = remote::decode_arguments(document.root())?;
//! assert_eq!(back.input, "hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod binder;
mod declare;

use std::future::Future;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use binder::{BindError, Binder};

use crate::error::RemoteError;
use crate::safepickle::{self, EncodeError, Protocol, Value};
use crate::target::{CallTarget, InvalidTarget};

/// A declared remote function; the value holds its arguments.
///
/// Implemented by [`remote!`](crate::remote!). `Serialize` writes the pair
/// `(positional arguments, keyword arguments)` that travels.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a declared remote function",
    label = "not declared with `remote!`",
    note = "closures, methods and plain functions have no name that a worker could look up; declare the function with `agentix_protocol::remote!` and pass its arguments as `name {{ argument: value }}`"
)]
pub trait RemoteFn: Serialize + Sized {
    /// What the function returns.
    type Output: DeserializeOwned;

    /// The function's name, for messages.
    const NAME: &'static str;

    /// Where the function is.
    ///
    /// # Errors
    ///
    /// [`InvalidTarget`] when the declared target, or the path of the declaration, breaks the
    /// grammar of targets.
    fn target() -> Result<CallTarget, InvalidTarget>;

    /// Takes the arguments out of what travelled.
    ///
    /// # Errors
    ///
    /// [`BindError`] names the parameter.
    fn bind(binder: &mut Binder<'_>) -> Result<Self, BindError>;
}

/// A declared remote function with a body.
pub trait RemoteBody: RemoteFn<Output: Serialize> {
    /// Was it declared `async`? If not, it may block, and a worker runs it in a thread of its own.
    const ASYNC: bool;

    /// Runs the body.
    fn invoke(self) -> impl Future<Output = Result<Self::Output, RemoteError>> + Send;
}

/// Pickles the arguments of a call, protocol 4: what every CPython from 3.8 on reads.
///
/// # Errors
///
/// [`EncodeError`] when a value has no pickled form.
pub fn encode_arguments<F: RemoteFn>(call: &F) -> Result<Vec<u8>, EncodeError> {
    safepickle::to_vec(call, Protocol::DEFAULT)
}

/// Takes the arguments of a function out of a decoded `(args, kwargs)` pair.
///
/// # Errors
///
/// [`BindError`] when it is no such pair, or the arguments do not fit the parameters.
pub fn decode_arguments<F: RemoteFn>(value: Value<'_>) -> Result<F, BindError> {
    let mut binder = Binder::new(F::NAME, value)?;
    let call = F::bind(&mut binder)?;
    binder.finish()?;
    Ok(call)
}

/// Fails the build when a declared target cannot be one: the checks of
/// [`CallTarget::validate`] that need no Unicode tables.
#[doc(hidden)]
#[must_use]
pub const fn is_plausible_target(target: &str) -> bool {
    let bytes = target.as_bytes();
    let mut separators = 0;
    let mut part = 0;
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b':' => {
                if part == 0 || i + 1 >= bytes.len() || bytes[i + 1] != b':' {
                    return false;
                }
                separators += 1;
                part = 0;
                i += 1;
            }
            b'.' => {
                if part == 0 {
                    return false;
                }
                part = 0;
            }
            b'0'..=b'9' => {
                if part == 0 {
                    return false;
                }
                part += 1;
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 128.. => part += 1,
            _ => return false,
        }
        i += 1;
    }
    separators == 1 && part > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorType;

    crate::remote! {
        fn add(a: i64, b: i64, /) -> i64 = "math::add";

        async fn greet(name: String, times: Option<u8>) -> String {
            name.repeat(times.unwrap_or(1).into())
        }

        fn divide(a: i64, b: i64) -> Result<i64, RemoteError> {
            if b == 0 {
                let name = ErrorType::Other("ZeroDivisionError".into());
                return Err(RemoteError::new(name, "division by zero"));
            }
            Ok(a / b)
        }

        fn ping() = "app::ping";
    }

    fn round_trip<F: RemoteFn>(call: &F) -> Result<F, BindError> {
        let bytes = encode_arguments(call).unwrap();
        decode_arguments(safepickle::decode(&bytes).unwrap().root())
    }

    fn bind<F: RemoteFn>(pair: impl Serialize) -> Result<F, BindError> {
        let bytes = safepickle::to_vec(&pair, Protocol::DEFAULT).unwrap();
        decode_arguments(safepickle::decode(&bytes).unwrap().root())
    }

    #[test]
    fn targets() {
        assert_eq!(add::target().unwrap().as_str(), "math::add");
        assert_eq!(
            greet::target().unwrap().as_str(),
            "agentix_protocol.remote.tests::greet"
        );
        assert_eq!(ping::NAME, "ping");
    }

    #[test]
    fn positional_and_named_arguments_travel_as_declared() {
        let bytes = encode_arguments(&add { a: 1, b: 2 }).unwrap();
        let document = safepickle::decode(&bytes).unwrap();
        let pair = document.root().tuple().unwrap();
        let positional = pair.at(0).unwrap().tuple().unwrap();
        assert_eq!(
            positional
                .iter()
                .filter_map(Value::as_i64)
                .collect::<Vec<_>>(),
            [1, 2]
        );
        assert!(pair.at(1).unwrap().dict().unwrap().is_empty());

        let call = greet {
            name: "a".into(),
            times: None,
        };
        let bytes = encode_arguments(&call).unwrap();
        let document = safepickle::decode(&bytes).unwrap();
        let pair = document.root().tuple().unwrap();
        assert!(pair.at(0).unwrap().tuple().unwrap().is_empty());
        assert_eq!(pair.at(1).unwrap().dict().unwrap().len(), 2);
        assert_eq!(round_trip(&call).unwrap().name, "a");
        round_trip(&ping {}).unwrap();
    }

    #[test]
    fn arguments_that_do_not_fit_say_which() {
        type Named = std::collections::BTreeMap<&'static str, i64>;
        let none = Named::new();
        let named = |pairs: &[(&'static str, i64)]| pairs.iter().copied().collect::<Named>();
        assert!(bind::<divide>(((6, 3), none.clone())).is_ok());
        assert!(bind::<divide>(((6,), named(&[("b", 3)]))).is_ok());
        assert!(matches!(
            bind::<divide>(((6,), none.clone())),
            Err(BindError::Missing { parameter: "b", .. })
        ));
        assert!(matches!(
            bind::<divide>(((6, 3), named(&[("b", 3)]))),
            Err(BindError::Multiple { parameter: "b", .. })
        ));
        assert!(matches!(
            bind::<divide>(((6, 3, 1), none.clone())),
            Err(BindError::TooMany {
                takes: 2,
                given: 3,
                ..
            })
        ));
        assert!(matches!(
            bind::<divide>(((6, 3), named(&[("c", 3)]))),
            Err(BindError::Unexpected { name, .. }) if name == "c"
        ));
        assert!(matches!(
            bind::<divide>((("x", 3), none.clone())),
            Err(BindError::Type { parameter: "a", .. })
        ));
        assert!(matches!(
            bind::<add>(((1,), named(&[("b", 3)]))),
            Err(BindError::Missing { parameter: "b", .. })
        ));
        assert!(matches!(
            bind::<divide>((1, 2)),
            Err(BindError::NotArguments)
        ));
    }

    #[test]
    fn a_parameter_of_any_type_is_bound_as_it_is() {
        let pair = ((1,), std::collections::BTreeMap::from([("b", (2, "x"))]));
        let bytes = safepickle::to_vec(&pair, Protocol::DEFAULT).unwrap();
        let document = safepickle::decode(&bytes).unwrap();
        let mut binder = Binder::new("f", document.root()).unwrap();
        assert_eq!(binder.value("a").unwrap().as_i64(), Some(1));
        assert_eq!(binder.value("b").unwrap().tuple().unwrap().len(), 2);
        assert!(matches!(
            binder.value("c"),
            Err(BindError::Missing { parameter: "c", .. })
        ));
        let mut binder = Binder::new("f", document.root()).unwrap();
        assert!(matches!(
            binder.value("b"),
            Err(BindError::Multiple { parameter: "b", .. })
        ));
    }

    /// Drives a future that never waits.
    fn now<F: Future>(future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(output) => output,
            std::task::Poll::Pending => panic!("the future waits"),
        }
    }

    #[test]
    fn bodies_run_and_raise() {
        const { assert!(greet::ASYNC && !divide::ASYNC) };
        assert_eq!(
            now(greet {
                name: "ab".into(),
                times: Some(2)
            }
            .invoke())
            .unwrap(),
            "abab"
        );
        assert_eq!(now(divide { a: 6, b: 3 }.invoke()), Ok(2));
        let error = now(divide { a: 6, b: 0 }.invoke()).unwrap_err();
        assert_eq!(error.error_type.as_str(), "ZeroDivisionError");
    }

    #[test]
    fn implausible_targets_do_not_compile() {
        for bad in [
            "",
            "app",
            "app:run",
            "::run",
            "app::",
            "app::a::b",
            "a b::c",
            "app::.x",
            "5::f",
            "app:::f",
        ] {
            assert!(!is_plausible_target(bad), "{bad}");
            assert!(CallTarget::validate(bad).is_err(), "{bad}");
        }
        for good in ["app::run", "pkg.sub::C.g", "模块::函数"] {
            assert!(is_plausible_target(good), "{good}");
        }
    }
}
