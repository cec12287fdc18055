//! The functions that a worker offers.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use agentix_protocol::error::{ErrorType, RemoteError};
use agentix_protocol::remote::{self, RemoteBody};
use agentix_protocol::safepickle::{self, Protocol, Value};
use agentix_protocol::target::{CallTarget, InvalidTarget};
use bytes::Bytes;

/// How a call ended: the pickled result, or the error.
pub(super) type Ended = Result<Bytes, RemoteError>;

type SyncFn = dyn Fn(&Bytes) -> Ended + Send + Sync;
type AsyncFn = dyn Fn(Bytes) -> Pin<Box<dyn Future<Output = Ended> + Send>> + Send + Sync;

/// A function, from pickled arguments to pickled result.
#[derive(Clone)]
pub(super) enum Function {
    /// May block: runs in a thread of its own.
    Sync(Arc<SyncFn>),
    Async(Arc<AsyncFn>),
}

/// A function that a [`Registry`] does not take.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The target breaks the grammar of targets.
    #[error(transparent)]
    Target(#[from] InvalidTarget),
    /// There is a function with this target.
    #[error("there are two functions with the target {0}; rename one of them")]
    Duplicate(CallTarget),
}

/// The functions that a worker offers, each under its target.
///
/// # Example
///
/// ```
/// use agentix_reference_worker::Registry;
///
/// agentix_protocol::remote! {
///     /// Called as `tools::shout`.
///     pub async fn shout(input: String) -> String = "tools::shout" { input.to_uppercase() }
/// }
///
/// let mut registry = Registry::new();
/// registry.register::<shout>()?;
/// assert!(registry.register::<shout>().is_err());
/// // In main: `agentix_reference_worker::serve_stdio(registry)`.
/// # Ok::<(), agentix_reference_worker::RegisterError>(())
/// ```
#[derive(Default)]
pub struct Registry {
    functions: HashMap<CallTarget, Function>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.functions.keys()).finish()
    }
}

impl Registry {
    /// A registry without functions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a function declared with [`remote!`](agentix_protocol::remote!).
    ///
    /// # Errors
    ///
    /// [`RegisterError`] when its target is malformed or taken.
    pub fn register<F>(&mut self) -> Result<&mut Self, RegisterError>
    where
        F: RemoteBody + Send + 'static,
    {
        let function = if F::ASYNC {
            Function::Async(Arc::new(|arguments| {
                Box::pin(async move {
                    let call = bind::<F>(&arguments)?;
                    drop(arguments);
                    let result = call.invoke().await.map_err(raised::<F>)?;
                    encode(&result)
                })
            }))
        } else {
            Function::Sync(Arc::new(|arguments| {
                let call = bind::<F>(arguments)?;
                // The body of a sync function never waits, so this polls it once.
                let result = tokio::runtime::Handle::current()
                    .block_on(call.invoke())
                    .map_err(raised::<F>)?;
                encode(&result)
            }))
        };
        self.insert(F::target()?, function)
    }

    /// Adds a sync function that takes the decoded pair of arguments itself, for arguments of any
    /// type, and returns a pickle.
    ///
    /// # Errors
    ///
    /// [`RegisterError`] when its target is malformed or taken.
    pub fn register_raw(
        &mut self,
        target: &str,
        function: impl Fn(Value<'_>) -> Result<Vec<u8>, RemoteError> + Send + Sync + 'static,
    ) -> Result<&mut Self, RegisterError> {
        let function = Function::Sync(Arc::new(move |arguments| {
            let document = safepickle::decode(arguments).map_err(undecodable)?;
            function(document.root()).map(Bytes::from)
        }));
        self.insert(CallTarget::validate(target)?, function)
    }

    /// As [`Registry::register_raw`], for a function that never blocks and is run as an async one.
    ///
    /// # Errors
    ///
    /// [`RegisterError`] when its target is malformed or taken.
    pub fn register_raw_async(
        &mut self,
        target: &str,
        function: impl Fn(Value<'_>) -> Result<Vec<u8>, RemoteError> + Send + Sync + 'static,
    ) -> Result<&mut Self, RegisterError> {
        let function = Arc::new(function);
        let function = Function::Async(Arc::new(move |arguments| {
            let function = Arc::clone(&function);
            Box::pin(async move {
                let document = safepickle::decode(&arguments).map_err(undecodable)?;
                function(document.root()).map(Bytes::from)
            })
        }));
        self.insert(CallTarget::validate(target)?, function)
    }

    fn insert(
        &mut self,
        target: CallTarget,
        function: Function,
    ) -> Result<&mut Self, RegisterError> {
        if self.functions.contains_key(&target) {
            return Err(RegisterError::Duplicate(target));
        }
        self.functions.insert(target, function);
        Ok(self)
    }

    /// Finds a function by the text of its target; the error is the one of AGX-TGT-012.
    pub(super) fn resolve(&self, callable: &str) -> Result<Function, RemoteError> {
        let raise = |name: &str, message| RemoteError::new(ErrorType::Other(name.into()), message);
        let target = CallTarget::validate(callable)
            .map_err(|error| raise("ValueError", error.to_string()))?;
        if let Some(function) = self.functions.get(&target) {
            return Ok(function.clone());
        }
        let module = target.module();
        if self.functions.keys().any(|known| known.module() == module) {
            let name = target.qualname();
            let message = format!("module '{module}' of this worker has no function '{name}'");
            Err(raise("AttributeError", message))
        } else {
            let message = format!("this worker has no module named '{module}'");
            Err(raise("ModuleNotFoundError", message))
        }
    }
}

fn bind<F: RemoteBody>(arguments: &[u8]) -> Result<F, RemoteError> {
    let document = safepickle::decode(arguments).map_err(undecodable)?;
    Ok(remote::decode_arguments(document.root())?)
}

/// Says which function an error came from, as a traceback does in its last line.
fn raised<F: RemoteBody>(error: RemoteError) -> RemoteError {
    let place = || match F::target() {
        Ok(target) => format!("in {target}\n{error}"),
        Err(_) => format!("in {}\n{error}", F::NAME),
    };
    RemoteError {
        traceback: Some(error.traceback.clone().unwrap_or_else(place)),
        ..error
    }
}

fn undecodable(error: safepickle::DecodeError) -> RemoteError {
    let message = format!("failed to unpickle arguments: {error}");
    RemoteError::new(ErrorType::ArgumentsDecodeError, message)
}

fn encode<T: serde::Serialize>(value: &T) -> Ended {
    match safepickle::to_vec(value, Protocol::DEFAULT) {
        Ok(pickle) => Ok(pickle.into()),
        Err(error) => {
            let message = format!("failed to pickle return value: {error}");
            Err(RemoteError::new(ErrorType::ResultEncodeError, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    agentix_protocol::remote! {
        fn double(n: i64) -> i64 = "pkg.mod::double" { 2 * n }
    }

    #[test]
    fn targets_resolve_or_say_what_is_missing() {
        let mut registry = Registry::new();
        registry.register::<double>().unwrap();
        assert!(matches!(
            registry.register::<double>(),
            Err(RegisterError::Duplicate(_))
        ));
        assert!(registry.resolve("pkg.mod::double").is_ok());
        for (callable, name) in [
            ("double", "ValueError"),
            ("pkg.mod::double::x", "ValueError"),
            ("pkg::double", "ModuleNotFoundError"),
            ("pkg.mod::triple", "AttributeError"),
            ("pkg.mod::double.x", "AttributeError"),
        ] {
            let error = registry.resolve(callable).err().unwrap();
            assert_eq!(error.error_type.as_str(), name, "{callable}");
        }
    }
}
