//! Panics of functions, as errors of their calls.

use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use agentix_protocol::error::{ErrorType, RemoteError};

use super::registry::Ended;

thread_local! {
    /// Where this thread panicked last.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Lets panics remember where they happened, beside what the hook of this process does.
pub(super) fn remember_places() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let place = info.location().map(ToString::to_string);
        PLACE.with(|last| *last.borrow_mut() = place);
        hook(info);
    }));
}

/// Runs a sync function.
pub(super) fn run(function: impl FnOnce() -> Ended) -> Ended {
    // What a function leaves half done is its own: nothing of the worker's is inside.
    catch_unwind(AssertUnwindSafe(function)).unwrap_or_else(|payload| Err(panicked(&*payload)))
}

/// Runs an async function.
pub(super) async fn run_async(function: impl Future<Output = Ended>) -> Ended {
    let mut function = pin!(function);
    std::future::poll_fn(|context| {
        match catch_unwind(AssertUnwindSafe(|| function.as_mut().poll(context))) {
            Ok(poll) => poll,
            Err(payload) => Poll::Ready(Err(panicked(&*payload))),
        }
    })
    .await
}

/// The error of a panic on this thread.
fn panicked(payload: &(dyn Any + Send)) -> RemoteError {
    let message = if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a message".to_owned()
    };
    let place = PLACE.with(|last| last.borrow_mut().take());
    RemoteError {
        traceback: place.map(|place| format!("panicked at {place}:\n{message}")),
        ..RemoteError::new(ErrorType::Other("panic".into()), message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_says_what_and_where() {
        remember_places();
        let raised = [
            run(|| panic!("boo {}", 1)).unwrap_err(),
            run_async(async {
                tokio::task::yield_now().await;
                panic!("boo 1")
            })
            .await
            .unwrap_err(),
        ];
        for error in raised {
            assert_eq!(error.error_type.as_str(), "panic");
            assert_eq!(error.message, "boo 1");
            assert!(error.traceback.unwrap().contains(file!()));
        }
        let odd = run(|| std::panic::panic_any(5)).unwrap_err();
        assert_eq!(odd.error_type.as_str(), "panic");
    }
}
