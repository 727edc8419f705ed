//! The helper heads: what training asks of a network beside the policy and the value, so that its tower learns more from each
//! game. Playing never computes them: they are no part of the body that is folded for it.
//!
//! Each begins with a 1×1 convolution of its own, to [`CHANNELS`] channels, so that one that is not asked for costs nothing.

use super::NetworkError;
use super::body::{LAST_GAIN, Outputs, policy_logits};
use super::layers::{Builder, Convolution, Linear, Mode, Normed, pool};
use tch::{Kind, TchError, Tensor};

/// The channels of each head: with 4 heads and 6×64 they are 2% of the tower's operations.
const CHANNELS: i64 = 32;

/// Numbers between the two linear layers of a head that says something of the whole position.
const HIDDEN: i64 = 64;

/// How a game may end: goal, elimination or immobilization, for the mover or for the enemy.
const ENDINGS: i64 = 6;

/// The turns that one unit of the turns-left head's last layer stands for, so that its weights need not grow large.
const TURNS_SCALE: f64 = 20.0;

/// What the names of all their tensors begin with.
const PREFIX: &str = "helpers.";

/// Whether a tensor is a helper head's.
pub(super) fn is_helper(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Which helper heads a forward pass computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Heads {
    /// How many turns are left.
    pub turns_left: bool,
    /// How the game ends.
    pub ending: bool,
    /// Which pieces will be taken.
    pub taken: bool,
    /// What the opponent will play.
    pub reply: bool,
}

impl Heads {
    /// Only the policy and the value.
    pub const NONE: Self = Self {
        turns_left: false,
        ending: false,
        taken: false,
        reply: false,
    };

    /// All of them.
    pub const ALL: Self = Self {
        turns_left: true,
        ending: true,
        taken: true,
        reply: true,
    };
}

/// What a network says of a batch when it is trained; heads that were not asked for are left out.
#[derive(Debug)]
pub struct TrainingOutputs {
    /// The policy's logits, legal or not: `[batch, 321]`, float.
    pub policy: Tensor,
    /// The logit of the mover's win probability: `[batch]`, float.
    pub value_logit: Tensor,
    /// The turns of both sides until the game's end, this one included; never below 0: `[batch]`, float.
    pub turns_left: Option<Tensor>,
    /// The logits of how the game ends, by goal, elimination and immobilization where the mover wins, then the same where the enemy
    /// does: `[batch, 6]`, float.
    pub ending: Option<Tensor>,
    /// For each square the logit that the piece on it will be taken before the game's end: `[batch, 64]`, float. Squares are as the
    /// mover sees the board; what it says of empty ones means nothing.
    pub taken: Option<Tensor>,
    /// The logits of the policy at the start of the opponent's next turn, legal or not, as the mover of this row sees the board:
    /// `[batch, 321]`, float.
    pub reply: Option<Tensor>,
}

/// The layers of the helper heads.
#[derive(Debug)]
pub(super) struct HelperHeads {
    turns_left: PooledHead,
    ending: PooledHead,
    taken: Normed,
    /// `[1, channels, 1, 1]`.
    taken_squares: Linear,
    reply: Normed,
    /// Steps in four directions, and placements: `[5, channels, 1, 1]`.
    reply_squares: Linear,
    reply_end: Linear,
}

/// A head that says something of the whole position.
#[derive(Debug)]
struct PooledHead {
    features: Normed,
    hidden: Linear,
    output: Linear,
}

impl HelperHeads {
    /// Builds the heads on a tower of so many channels.
    pub(super) fn new(builder: &mut Builder, tower: i64) -> Result<Self, NetworkError> {
        let turns_left = PooledHead::new(builder, "turns_left", tower, 1)?;
        let ending = PooledHead::new(builder, "ending", tower, ENDINGS)?;
        let mut features = |name| Normed::new(builder, &named(name), (tower, CHANNELS), 1);
        let (taken, reply) = (features("taken")?, features("reply")?);
        let mut last = |name, shape: &[i64]| Linear::new(builder, &named(name), shape, LAST_GAIN);
        Ok(Self {
            turns_left,
            ending,
            taken,
            taken_squares: last("taken.squares", &[1, CHANNELS, 1, 1])?,
            reply,
            reply_squares: last("reply.squares", &[5, CHANNELS, 1, 1])?,
            reply_end: last("reply.end", &[1, 2 * CHANNELS])?,
        })
    }

    /// Adds what the heads that are asked for say of the tower's `[batch, channels, 8, 8]`.
    pub(super) fn forward(
        &self,
        tower: &Tensor,
        outputs: Outputs,
        heads: Heads,
        mode: Mode,
    ) -> Result<TrainingOutputs, TchError> {
        let asked = |asked: bool, head: &dyn Fn() -> Result<Tensor, TchError>| match asked {
            true => head().map(Some),
            false => Ok(None),
        };
        Ok(TrainingOutputs {
            policy: outputs.policy,
            value_logit: outputs.value_logit,
            turns_left: asked(heads.turns_left, &|| self.turns_left(tower, mode))?,
            ending: asked(heads.ending, &|| self.ending.forward(tower, mode))?,
            taken: asked(heads.taken, &|| self.taken(tower, mode))?,
            reply: asked(heads.reply, &|| self.reply(tower, mode))?,
        })
    }

    fn turns_left(&self, tower: &Tensor, mode: Mode) -> Result<Tensor, TchError> {
        let output = self.turns_left.forward(tower, mode)?.f_squeeze_dim(1)?;
        output.f_softplus()?.f_mul_scalar(TURNS_SCALE)
    }

    fn taken(&self, tower: &Tensor, mode: Mode) -> Result<Tensor, TchError> {
        let features = self.taken.activate(tower, None, None, mode)?;
        let squares = self.taken_squares.apply_to_squares(&features)?;
        squares.f_to_kind(Kind::Float)?.f_reshape([-1, 64])
    }

    fn reply(&self, tower: &Tensor, mode: Mode) -> Result<Tensor, TchError> {
        let features = self.reply.activate(tower, None, None, mode)?;
        policy_logits(&features, &self.reply_squares, &self.reply_end)
    }
}

fn named(part: &str) -> String {
    format!("{PREFIX}{part}")
}

impl PooledHead {
    fn new(
        builder: &mut Builder,
        name: &str,
        tower: i64,
        outputs: i64,
    ) -> Result<Self, NetworkError> {
        let name = named(name);
        let part = |part: &str| format!("{name}.{part}");
        let pooled = [HIDDEN, 2 * CHANNELS];
        Ok(Self {
            features: Normed::new(builder, &name, (tower, CHANNELS), 1)?,
            hidden: Linear::new(builder, &part("hidden"), &pooled, 1.0)?,
            output: Linear::new(builder, &part("output"), &[outputs, HIDDEN], LAST_GAIN)?,
        })
    }

    /// `[batch, channels, 8, 8]` to `[batch, outputs]`, float.
    fn forward(&self, tower: &Tensor, mode: Mode) -> Result<Tensor, TchError> {
        let features = self.features.activate(tower, None, None, mode)?;
        let pooled = pool(&features)?.f_to_kind(Kind::Float)?;
        self.output.apply(&self.hidden.apply(&pooled)?.f_relu_()?)
    }
}
