//! A request: rows that a client sends to be evaluated, and the channel for the answers.

use crate::inference::ANSWER_FLOATS;
use crate::packed::ROW_BYTES;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// The answers to some rows of a request, from `first` on, or why there are none.
pub(super) type Reply = Result<(usize, Vec<f32>), String>;

/// Some rows of a request. However it ends, its client gets a reply.
#[derive(Debug)]
pub(super) struct Part {
    /// The whole request: `[rows, ROW_BYTES]`.
    packed: Arc<Vec<u8>>,
    /// Which rows of the request these are.
    rows: Range<usize>,
    /// For the answers; what it holds does not matter.
    space: Vec<f32>,
    /// None when it has been answered.
    reply: Option<Sender<Reply>>,
    /// Requests are numbered as they come.
    pub(super) number: u64,
}

impl Part {
    /// A whole request of `rows` rows.
    pub(super) fn new(
        packed: Arc<Vec<u8>>,
        rows: usize,
        space: Vec<f32>,
        reply: Sender<Reply>,
    ) -> Self {
        Self {
            packed,
            rows: 0..rows,
            space,
            reply: Some(reply),
            number: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Its packed rows.
    pub(super) fn packed(&self) -> &[u8] {
        &self.packed[self.rows.start * ROW_BYTES..self.rows.end * ROW_BYTES]
    }

    /// Room for its answers, `[rows, ANSWER_FLOATS]`.
    pub(super) fn space(&mut self) -> &mut [f32] {
        self.space.resize(self.rows.len() * ANSWER_FLOATS, 0.0);
        &mut self.space
    }

    /// Cuts off the first `count` rows.
    pub(super) fn split(&mut self, count: usize) -> Self {
        let middle = self.rows.start + count;
        let first = Self {
            packed: self.packed.clone(),
            rows: self.rows.start..middle,
            space: Vec::new(),
            reply: self.reply.clone(),
            number: self.number,
        };
        self.rows.start = middle;
        first
    }

    /// Sends what stands in the space.
    pub(super) fn answer(mut self) {
        let (first, space) = (self.rows.start, std::mem::take(&mut self.space));
        self.send(Ok((first, space)));
    }

    pub(super) fn fail(mut self, reason: &str) {
        self.send(Err(reason.to_owned()));
    }

    fn send(&mut self, reply: Reply) {
        // Given back first, so that the client finds its buffer free.
        self.packed = Arc::default();
        if let Some(sender) = self.reply.take() {
            // A client that is gone wants no answer.
            let _ = sender.send(reply);
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.reply.is_some() {
            self.send(Err("the evaluation was abandoned".into()));
        }
    }
}
