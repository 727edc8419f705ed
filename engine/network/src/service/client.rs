//! A worker's access to a network in the service.

use super::evaluation_service::ServedNetwork;
use super::request::{Part, Reply};
use crate::inference::ANSWER_FLOATS;
use crate::packed::{pack, read_answer};
use engine::search::{Evaluations, Evaluator, EvaluatorError, Query};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A worker's access to a network in an [`EvaluationService`](super::EvaluationService), which it keeps there.
///
/// It has any number of slots, from 0, each with at most one batch in flight: a worker submits the batch of one group of games
/// and searches another group while it is evaluated. As an [`Evaluator`] it submits and waits, on a slot of its own.
#[derive(Debug)]
pub struct EvaluationClient {
    network: Arc<ServedNetwork>,
    slots: Vec<Slot>,
    own: Slot,
}

/// A batch in flight, and what is kept from batch to batch.
#[derive(Debug)]
struct Slot {
    queries: Vec<Query>,
    is_in_flight: bool,
    /// The queries as packed rows; whole again when every answer has come.
    packed: Arc<Vec<u8>>,
    /// The parts of the answers that have come: their first rows, and their numbers.
    answers: Vec<(usize, Vec<f32>)>,
    /// Room for the next answers.
    space: Vec<f32>,
    replies: (Sender<Reply>, Receiver<Reply>),
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            queries: Vec::new(),
            is_in_flight: false,
            packed: Arc::default(),
            answers: Vec::new(),
            space: Vec::new(),
            replies: channel(),
        }
    }
}

impl ServedNetwork {
    /// A new client. Every worker has its own.
    pub fn client(self: &Arc<Self>) -> EvaluationClient {
        EvaluationClient {
            network: self.clone(),
            slots: Vec::new(),
            own: Slot::default(),
        }
    }
}

impl EvaluationClient {
    /// Encodes queries and sends them off. A slot that still has a batch in flight is an error. A service that has ended is one for
    /// [`receive`](Self::receive).
    pub fn submit(&mut self, slot: usize, queries: &[Query]) -> Result<(), EvaluatorError> {
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, Slot::default);
        }
        if self.slots[slot].is_in_flight {
            let message = format!("slot {slot} already has a batch in flight");
            return Err(device_error(&self.network.name, message));
        }
        self.slots[slot].submit(&self.network, queries);
        Ok(())
    }

    /// Waits for the answers to a slot's batch; `out` is cleared first and holds one answer a query afterwards, in their order.
    /// Nothing in flight is an error, and so is a service that has ended.
    pub fn receive(&mut self, slot: usize, out: &mut Evaluations) -> Result<(), EvaluatorError> {
        match self.slots.get_mut(slot) {
            Some(slot) => slot.receive(&self.network.name, out),
            None => Slot::default().receive(&self.network.name, out),
        }
    }
}

impl Slot {
    fn submit(&mut self, network: &ServedNetwork, queries: &[Query]) {
        self.queries.clear();
        self.queries.extend_from_slice(queries);
        self.is_in_flight = true;
        if Arc::get_mut(&mut self.packed).is_none() {
            self.packed = Arc::default();
        }
        if let Some(packed) = Arc::get_mut(&mut self.packed) {
            packed.clear();
            queries.iter().for_each(|query| pack(query, packed));
        }
        if !queries.is_empty() {
            let space = std::mem::take(&mut self.space);
            let (packed, reply) = (self.packed.clone(), self.replies.0.clone());
            let part = Part::new(packed, queries.len(), space, reply);
            network.service.queue.push(network.id, part);
        }
    }

    fn receive(&mut self, name: &str, out: &mut Evaluations) -> Result<(), EvaluatorError> {
        out.clear();
        if !std::mem::take(&mut self.is_in_flight) {
            return Err(device_error(name, "nothing is in flight".into()));
        }
        if let Err(reason) = self.collect() {
            // Other parts' answers may still come; they are dropped.
            *self = Self::default();
            return Err(device_error(name, reason));
        }
        let answers = self.answers.iter();
        let answers = answers.flat_map(|(_, numbers)| numbers.chunks_exact(ANSWER_FLOATS));
        for (query, answer) in self.queries.iter().zip(answers) {
            read_answer(name, query, answer, out)?;
        }
        if let Some((_, numbers)) = self.answers.pop() {
            self.space = numbers;
        }
        Ok(())
    }

    /// Waits until every row is answered.
    fn collect(&mut self) -> Result<(), String> {
        self.answers.clear();
        let mut missing = self.queries.len();
        while missing > 0 {
            let reply = self.replies.1.recv();
            let (first, numbers) = reply.map_err(|error| error.to_string())??;
            missing = missing.saturating_sub(numbers.len() / ANSWER_FLOATS);
            self.answers.push((first, numbers));
        }
        self.answers.sort_unstable_by_key(|(first, _)| *first);
        Ok(())
    }
}

impl Evaluator for EvaluationClient {
    fn name(&self) -> &str {
        &self.network.name
    }

    fn leaves_at_once(&self) -> u32 {
        self.network.leaves_at_once
    }

    fn evaluate(&mut self, queries: &[Query], out: &mut Evaluations) -> Result<(), EvaluatorError> {
        self.own.submit(&self.network, queries);
        self.own.receive(&self.network.name, out)
    }
}

fn device_error(name: &str, message: String) -> EvaluatorError {
    EvaluatorError::Device {
        evaluator: name.to_owned(),
        message,
    }
}
