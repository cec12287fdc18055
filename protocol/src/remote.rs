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

use std::future::Future;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{ErrorType, RemoteError};
use crate::safepickle::{self, DeserializeError, EncodeError, Protocol, Value};
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

/// Why arguments do not fit a function.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The value is no `(tuple, dict)` pair, or the dict has a key that is no string.
    #[error("arguments are not a pair of a tuple and a dict with str keys")]
    NotArguments,
    /// A parameter got nothing.
    #[error("{function}() missing required argument: '{parameter}'")]
    Missing {
        /// The function.
        function: &'static str,
        /// The parameter.
        parameter: &'static str,
    },
    /// An argument fits no parameter.
    #[error("{function}() got an unexpected keyword argument '{name}'")]
    Unexpected {
        /// The function.
        function: &'static str,
        /// Its name.
        name: String,
    },
    /// More positional arguments than parameters.
    #[error("{function}() takes {takes} positional arguments but {given} were given")]
    TooMany {
        /// The function.
        function: &'static str,
        /// Parameters that can be given by position.
        takes: usize,
        /// Arguments that were.
        given: usize,
    },
    /// A parameter got two values.
    #[error("{function}() got multiple values for argument '{parameter}'")]
    Multiple {
        /// The function.
        function: &'static str,
        /// The parameter.
        parameter: &'static str,
    },
    /// An argument has another type than its parameter.
    #[error("{function}() argument '{parameter}': {source}")]
    Type {
        /// The function.
        function: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// What was expected and found.
        source: DeserializeError,
    },
}

impl From<BindError> for RemoteError {
    /// `ArgumentsDecodeError` for what is no pair, `TypeError` as in Python for the rest.
    fn from(error: BindError) -> Self {
        let error_type = match error {
            BindError::NotArguments => ErrorType::ArgumentsDecodeError,
            _ => ErrorType::Other("TypeError".into()),
        };
        Self::new(error_type, error.to_string())
    }
}

/// Matches arguments to parameters as a Python call does.
#[derive(Debug)]
pub struct Binder<'d> {
    function: &'static str,
    positional: Vec<Value<'d>>,
    keyword: Vec<(&'d str, Value<'d>)>,
    /// Parameters bound so far.
    bound: usize,
}

impl<'d> Binder<'d> {
    /// Takes a decoded `(args, kwargs)` pair.
    ///
    /// # Errors
    ///
    /// [`BindError::NotArguments`] when it is none.
    pub fn new(function: &'static str, value: Value<'d>) -> Result<Self, BindError> {
        let pair = value
            .tuple()
            .filter(|pair| pair.len() == 2)
            .ok_or(BindError::NotArguments)?;
        let part = |index| pair.at(index).ok_or(BindError::NotArguments);
        let positional = part(0)?
            .tuple()
            .ok_or(BindError::NotArguments)?
            .iter()
            .collect();
        let keyword = part(1)?
            .dict()
            .ok_or(BindError::NotArguments)?
            .iter()
            .map(|(key, value)| {
                key.as_str()
                    .map(|key| (key, value))
                    .ok_or(BindError::NotArguments)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            function,
            positional,
            keyword,
            bound: 0,
        })
    }

    /// Binds the next parameter, which can be given by position alone.
    ///
    /// # Errors
    ///
    /// [`BindError::Missing`] or [`BindError::Type`].
    pub fn positional<T: Deserialize<'d>>(
        &mut self,
        parameter: &'static str,
    ) -> Result<T, BindError> {
        let value = self.positional.get(self.bound).copied();
        self.bound += 1;
        self.convert(parameter, value)
    }

    /// Binds the next parameter, given by position or by name.
    ///
    /// # Errors
    ///
    /// [`BindError::Missing`], [`BindError::Multiple`] or [`BindError::Type`].
    pub fn parameter<T: Deserialize<'d>>(
        &mut self,
        parameter: &'static str,
    ) -> Result<T, BindError> {
        let value = self.take(parameter)?;
        self.convert(parameter, value)
    }

    /// Binds the next parameter, given by position or by name, to a value of any type.
    ///
    /// # Errors
    ///
    /// [`BindError::Missing`] or [`BindError::Multiple`].
    pub fn value(&mut self, parameter: &'static str) -> Result<Value<'d>, BindError> {
        let function = self.function;
        self.take(parameter)?.ok_or(BindError::Missing {
            function,
            parameter,
        })
    }

    fn take(&mut self, parameter: &'static str) -> Result<Option<Value<'d>>, BindError> {
        let by_position = self.positional.get(self.bound).copied();
        self.bound += 1;
        let by_name = self.keyword.iter().position(|(name, _)| *name == parameter);
        let by_name = by_name.map(|at| self.keyword.swap_remove(at).1);
        match (by_position, by_name) {
            (Some(_), Some(_)) => Err(BindError::Multiple {
                function: self.function,
                parameter,
            }),
            (value, None) | (None, value) => Ok(value),
        }
    }

    fn convert<T: Deserialize<'d>>(
        &self,
        parameter: &'static str,
        value: Option<Value<'d>>,
    ) -> Result<T, BindError> {
        let function = self.function;
        let value = value.ok_or(BindError::Missing {
            function,
            parameter,
        })?;
        safepickle::from_value(value).map_err(|source| BindError::Type {
            function,
            parameter,
            source,
        })
    }

    /// Checks that nothing is left over.
    ///
    /// # Errors
    ///
    /// [`BindError::TooMany`] or [`BindError::Unexpected`].
    pub fn finish(self) -> Result<(), BindError> {
        let function = self.function;
        if self.positional.len() > self.bound {
            let given = self.positional.len();
            return Err(BindError::TooMany {
                function,
                takes: self.bound,
                given,
            });
        }
        match self.keyword.first() {
            Some((name, _)) => Err(BindError::Unexpected {
                function,
                name: (*name).to_owned(),
            }),
            None => Ok(()),
        }
    }
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

/// Declares remote functions; see [the module](mod@crate::remote).
///
/// ```text
/// [pub] [async] fn NAME(PARAMETERS) [-> TYPE] = "module::qualname";      lives elsewhere
/// [pub] [async] fn NAME(PARAMETERS) [-> TYPE] { … }                      its target is its path
/// [pub] [async] fn NAME(PARAMETERS) [-> TYPE] = "module::qualname" { … } both
/// ```
///
/// `TYPE` may be `Result<T, E>` where `E: Into<RemoteError>`: the remote function then returns `T`
/// or raises. Parameters before a `/` travel by position. A body is a plain function body; without
/// `async` it may block.
///
/// Arguments travel by name, as in `run(input="hello")`; a `None` travels as `None`.
#[macro_export]
macro_rules! remote {
    (@items) => {};
    (@items $(#[$meta:meta])* $vis:vis async fn $name:ident ($($params:tt)*) $($rest:tt)*) => {
        $crate::remote!(@signature {[$(#[$meta])*] [$vis] $name [async]} ($($params)*) $($rest)*);
    };
    (@items $(#[$meta:meta])* $vis:vis fn $name:ident ($($params:tt)*) $($rest:tt)*) => {
        $crate::remote!(@signature {[$(#[$meta])*] [$vis] $name []} ($($params)*) $($rest)*);
    };

    (@signature $head:tt $params:tt -> Result<$ok:ty, $err:ty> = $target:literal; $($rest:tt)*) => {
        $crate::remote!(@params $head {[$ok] [] [$target] []} [] [] $params);
        $crate::remote!(@items $($rest)*);
    };
    (@signature $head:tt $params:tt -> Result<$ok:ty, $err:ty> = $target:literal $body:block $($rest:tt)*) => {
        $crate::remote!(@params $head {[$ok] [$err] [$target] [$body]} [] [] $params);
        $crate::remote!(@items $($rest)*);
    };
    (@signature $head:tt $params:tt -> Result<$ok:ty, $err:ty> $body:block $($rest:tt)*) => {
        $crate::remote!(@params $head {[$ok] [$err] [] [$body]} [] [] $params);
        $crate::remote!(@items $($rest)*);
    };
    (@signature $head:tt $params:tt -> $ok:ty = $target:literal; $($rest:tt)*) => {
        $crate::remote!(@params $head {[$ok] [] [$target] []} [] [] $params);
        $crate::remote!(@items $($rest)*);
    };
    (@signature $head:tt $params:tt -> $ok:ty = $target:literal $body:block $($rest:tt)*) => {
        $crate::remote!(@params $head {[$ok] [] [$target] [$body]} [] [] $params);
        $crate::remote!(@items $($rest)*);
    };
    (@signature $head:tt $params:tt -> $ok:ty $body:block $($rest:tt)*) => {
        $crate::remote!(@params $head {[$ok] [] [] [$body]} [] [] $params);
        $crate::remote!(@items $($rest)*);
    };
    (@signature $head:tt $params:tt = $target:literal; $($rest:tt)*) => {
        $crate::remote!(@params $head {[()] [] [$target] []} [] [] $params);
        $crate::remote!(@items $($rest)*);
    };
    (@signature $head:tt $params:tt = $target:literal $body:block $($rest:tt)*) => {
        $crate::remote!(@params $head {[()] [] [$target] [$body]} [] [] $params);
        $crate::remote!(@items $($rest)*);
    };
    (@signature $head:tt $params:tt $body:block $($rest:tt)*) => {
        $crate::remote!(@params $head {[()] [] [] [$body]} [] [] $params);
        $crate::remote!(@items $($rest)*);
    };

    (@params $head:tt $tail:tt $positional:tt $named:tt ()) => {
        $crate::remote!(@emit $head $tail $positional $named);
    };
    (@params $head:tt $tail:tt [] [$($seen:tt)*] (/ $(, $($rest:tt)*)?)) => {
        $crate::remote!(@params $head $tail [$($seen)*] [] ($($($rest)*)?));
    };
    (@params $head:tt $tail:tt $positional:tt [$($seen:tt)*]
        ($(#[$meta:meta])* $param:ident : $type:ty $(, $($rest:tt)*)?)) => {
        $crate::remote!(@params $head $tail $positional
            [$($seen)* {[$(#[$meta])*] $param [$type]}] ($($($rest)*)?));
    };

    (@emit {[$($meta:tt)*] [$vis:vis] $name:ident $async:tt}
        {[$ok:ty] $err:tt $target:tt $body:tt}
        [$({[$($pmeta:tt)*] $pname:ident [$ptype:ty]})*]
        [$({[$($nmeta:tt)*] $nname:ident [$ntype:ty]})*]) => {
        $($meta)*
        #[allow(non_camel_case_types)]
        $vis struct $name {
            $($($pmeta)* #[allow(missing_docs)] $vis $pname: $ptype,)*
            $($($nmeta)* #[allow(missing_docs)] $vis $nname: $ntype,)*
        }

        impl $crate::remote::RemoteFn for $name {
            type Output = $ok;
            const NAME: &'static str = ::core::stringify!($name);

            fn target() -> ::core::result::Result<
                $crate::target::CallTarget,
                $crate::target::InvalidTarget,
            > {
                $crate::remote!(@target $target $name)
            }

            fn bind(
                binder: &mut $crate::remote::Binder<'_>,
            ) -> ::core::result::Result<Self, $crate::remote::BindError> {
                let _ = &binder;
                ::core::result::Result::Ok(Self {
                    $($pname: binder.positional(::core::stringify!($pname))?,)*
                    $($nname: binder.parameter(::core::stringify!($nname))?,)*
                })
            }
        }

        impl $crate::__private::serde::Serialize for $name {
            fn serialize<S: $crate::__private::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                use $crate::__private::serde::{Serialize, Serializer, ser::{SerializeMap as _, SerializeTuple as _}};

                #[allow(dead_code)]
                struct Positional<'a>(&'a $name);
                impl Serialize for Positional<'_> {
                    fn serialize<S: Serializer>(
                        &self,
                        serializer: S,
                    ) -> ::core::result::Result<S::Ok, S::Error> {
                        const NAMES: &[&str] = &[$(::core::stringify!($pname)),*];
                        #[allow(unused_mut)]
                        let mut tuple = serializer.serialize_tuple(NAMES.len())?;
                        $(tuple.serialize_element(&self.0.$pname)?;)*
                        tuple.end()
                    }
                }

                #[allow(dead_code)]
                struct Named<'a>(&'a $name);
                impl Serialize for Named<'_> {
                    fn serialize<S: Serializer>(
                        &self,
                        serializer: S,
                    ) -> ::core::result::Result<S::Ok, S::Error> {
                        const NAMES: &[&str] = &[$(::core::stringify!($nname)),*];
                        #[allow(unused_mut)]
                        let mut map = serializer.serialize_map(::core::option::Option::Some(NAMES.len()))?;
                        $(map.serialize_entry(::core::stringify!($nname), &self.0.$nname)?;)*
                        map.end()
                    }
                }

                let mut pair = serializer.serialize_tuple(2)?;
                pair.serialize_element(&Positional(self))?;
                pair.serialize_element(&Named(self))?;
                pair.end()
            }
        }

        $crate::remote!(@body $name $async [$ok] $err [$($pname: $ptype,)* $($nname: $ntype,)*] $body);
    };

    (@target [] $name:ident) => {
        $crate::target::CallTarget::from_rust_path(::core::module_path!(), ::core::stringify!($name))
    };
    (@target [$target:literal] $name:ident) => {{
        const _: () = ::core::assert!(
            $crate::remote::is_plausible_target($target),
            "a remote target is written module::qualname"
        );
        $crate::target::CallTarget::validate($target)
    }};

    (@body $name:ident $async:tt $ok:tt $err:tt $params:tt []) => {};
    (@body $name:ident [$($async:tt)?] [$ok:ty] [] [$($param:ident: $type:ty,)*] [$body:block]) => {
        impl $crate::remote::RemoteBody for $name {
            const ASYNC: bool = $crate::remote!(@is_async $($async)?);

            fn invoke(
                self,
            ) -> impl ::core::future::Future<
                Output = ::core::result::Result<$ok, $crate::error::RemoteError>,
            > + ::core::marker::Send {
                $($async)? fn body($($param: $type),*) -> $ok $body
                async move {
                    let Self { $($param),* } = self;
                    ::core::result::Result::Ok($crate::remote!(@await [$($async)?] body($($param),*)))
                }
            }
        }
    };
    (@body $name:ident [$($async:tt)?] [$ok:ty] [$err:ty] [$($param:ident: $type:ty,)*] [$body:block]) => {
        impl $crate::remote::RemoteBody for $name {
            const ASYNC: bool = $crate::remote!(@is_async $($async)?);

            fn invoke(
                self,
            ) -> impl ::core::future::Future<
                Output = ::core::result::Result<$ok, $crate::error::RemoteError>,
            > + ::core::marker::Send {
                $($async)? fn body($($param: $type),*) -> ::core::result::Result<$ok, $err> $body
                async move {
                    let Self { $($param),* } = self;
                    $crate::remote!(@await [$($async)?] body($($param),*))
                        .map_err(::core::convert::Into::into)
                }
            }
        }
    };

    (@is_async) => { false };
    (@is_async async) => { true };
    (@await [] $call:expr) => { $call };
    (@await [async] $call:expr) => { $call.await };

    ($($items:tt)+) => {
        $crate::remote!(@items $($items)+);
    };
}

#[cfg(test)]
mod tests {
    use super::*;

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
