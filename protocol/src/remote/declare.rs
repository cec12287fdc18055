//! The macro that declares remote functions.

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
