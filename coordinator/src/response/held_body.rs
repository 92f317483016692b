//! A response body that keeps a value, such as a permit, until the body is sent or the client has
//! disconnected.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};

struct HeldBody<T> {
    body: Body,
    _kept: T,
}

/// Wraps `body` so that `kept` is dropped together with it.
pub(crate) fn until_sent<T: Send + Unpin + 'static>(body: Body, kept: T) -> Body {
    Body::new(HeldBody { body, _kept: kept })
}

impl<T: Unpin> http_body::Body for HeldBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http_body::Body as _;

    use super::*;

    #[tokio::test]
    async fn the_value_is_kept_until_the_body_is_sent() {
        let kept = Arc::new(());
        let body = until_sent(Body::from("text"), Arc::clone(&kept));
        assert_eq!((body.size_hint().exact(), Arc::strong_count(&kept)), (Some(4), 2));
        let bytes = axum::body::to_bytes(body, 10).await.unwrap();
        assert_eq!((&bytes[..], Arc::strong_count(&kept)), (&b"text"[..], 1));
    }
}
