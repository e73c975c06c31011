//! The agreement before every operation of a world. Each rank proposes its next operation. Rank 0 compares the
//! proposals and sends the same decision to all ranks.
//!
//! ```text
//! rank r > 0:   proposal -> rank 0,   decision <- rank 0
//! rank 0:       looks for the first rank that failed, left, or differs from rank 0 in a field
//! ```

use crate::backend::Backend;
use crate::backend::cpu::{CpuBackend, CpuTensor};
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// Words of 8 bytes in a proposal and in a decision.
pub(super) const WORDS: usize = 4;

/// The collective operations of a world, and two reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i64)]
pub(super) enum Operation {
    /// A rank reports that its part of an operation failed.
    Failure,
    /// A rank has dropped its world.
    End,
    Barrier,
    Broadcast,
    Gather,
    Sum,
    Agree,
    MeanGradients,
    MeanOf,
    ShardedStep,
    ShardedState,
}

impl Operation {
    const ALL: [Operation; 11] = [
        Operation::Failure,
        Operation::End,
        Operation::Barrier,
        Operation::Broadcast,
        Operation::Gather,
        Operation::Sum,
        Operation::Agree,
        Operation::MeanGradients,
        Operation::MeanOf,
        Operation::ShardedStep,
        Operation::ShardedState,
    ];

    /// The method that a program calls, for errors.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Failure => "a failure",
            Operation::End => "the end of the world",
            Operation::Barrier => "barrier",
            Operation::Broadcast => "broadcast",
            Operation::Gather => "gather",
            Operation::Sum => "sum",
            Operation::Agree => "agree",
            Operation::MeanGradients => "mean_gradients",
            Operation::MeanOf => "mean_of",
            Operation::ShardedStep => "a step of a ShardedOptimizer",
            Operation::ShardedState => "the state of a ShardedOptimizer",
        }
    }
}

/// The operation that a rank proposes. All fields must be equal on all ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proposal {
    pub operation: Operation,
    /// Number of micro-batches, or of other items that the ranks share.
    pub count: usize,
    /// Number of steps taken.
    pub step: u64,
    /// Hash of names, shapes and dtypes.
    pub layout: u64,
    /// Hash of options and values.
    pub value: u64,
}

/// How errors name the fields of a proposal.
const FIELDS: [&str; WORDS + 1] = [
    "in the operation",
    "in the number of micro-batches",
    "in the number of steps done",
    "in the names, shapes, dtypes or number of the tensors",
    "in the options or values",
];

impl Proposal {
    pub fn of(operation: Operation) -> Self {
        Proposal { operation, count: 0, step: 0, layout: 0, value: 0 }
    }

    /// The fields as words. Operation and count share the first.
    pub fn words(&self) -> [i64; WORDS] {
        let first = (self.operation as i64) << 48 | (self.count as i64 & ((1 << 48) - 1));
        [first, self.step.cast_signed(), self.layout.cast_signed(), self.value.cast_signed()]
    }
}

/// The fields that the words of a proposal hold.
fn fields([first, step, layout, value]: [i64; WORDS]) -> [i64; WORDS + 1] {
    [first >> 48, first & ((1 << 48) - 1), step, layout, value]
}

const AGREED: i64 = -1;
const STALLED: i64 = -2;

/// Compares the proposals of all ranks, in rank order.
pub(super) fn decide(proposals: &[[i64; WORDS]]) -> [i64; WORDS] {
    let operation = |rank: &usize| fields(proposals[*rank])[0];
    let ours = fields(proposals[0]);
    for left in [Operation::Failure, Operation::End] {
        let ranks = 0..proposals.len();
        let first = ranks.clone().find(|rank| operation(rank) == left as i64);
        if let Some(rank) = first.filter(|_| ranks.clone().any(|r| operation(&r) != left as i64)) {
            return [0, rank as i64, left as i64, left as i64];
        }
    }
    for (rank, theirs) in proposals.iter().map(|&words| fields(words)).enumerate() {
        if let Some(i) = (0..ours.len()).find(|&i| ours[i] != theirs[i]) {
            return [i as i64, rank as i64, theirs[i], ours[i]];
        }
    }
    [AGREED, 0, 0, 0]
}

/// The decision that `rank` did not answer within `seconds`.
pub(super) fn stalled(rank: usize, seconds: u64) -> [i64; WORDS] {
    [STALLED, rank as i64, seconds.cast_signed(), 0]
}

/// The decision that `rank` has left.
pub(super) fn has_left(rank: usize) -> [i64; WORDS] {
    let end = Operation::End as i64;
    [0, rank as i64, end, end]
}

/// True if a rank is gone, so that the world cannot be used any more.
pub(super) fn is_final([code, _, theirs, _]: [i64; WORDS]) -> bool {
    code == STALLED || code == 0 && theirs == Operation::End as i64
}

/// Converts a decision into this rank's result.
pub(super) fn outcome([code, rank, theirs, ours]: [i64; WORDS], proposal: &Proposal) -> Result<()> {
    let rank = rank as usize;
    let name = |code: i64| {
        let operation = Operation::ALL.iter().find(|operation| **operation as i64 == code);
        operation.map_or("an unknown operation", |operation| operation.name())
    };
    let what = match code {
        AGREED => return Ok(()),
        STALLED => {
            let (what, seconds) = (proposal.operation.name(), theirs.cast_unsigned());
            return Err(Error::Stalled { waiting_for: rank, what, seconds });
        }
        0 if theirs == Operation::Failure as i64 => {
            format!("its part of {} failed; see the error of that rank", proposal.operation.name())
        }
        0 if theirs == Operation::End as i64 => {
            format!("it left before {}", proposal.operation.name())
        }
        0 => format!("it differs from rank 0: {} there, {} here", name(theirs), name(ours)),
        1 | 2 => {
            let field = FIELDS[code as usize];
            format!("it differs from rank 0 {field}: {theirs} there, {ours} on rank 0")
        }
        _ => {
            let field = FIELDS.get(code as usize).copied().unwrap_or("in its proposal");
            format!("it differs from rank 0 {field}, in {}", proposal.operation.name())
        }
    };
    Err(Error::Mismatch { rank, what })
}

/// The message that carries these words.
pub(super) fn message(words: [i64; WORDS]) -> Result<CpuTensor> {
    CpuBackend::from_host(i64::into_host(words.to_vec()), Shape::from(WORDS))
}

/// The words that a message carries.
pub(super) fn words(message: &CpuTensor) -> Result<[i64; WORDS]> {
    let words = message.as_slice::<i64>()?;
    words.try_into().map_err(|_| Error::LengthMismatch {
        op: "agreement",
        len: words.len(),
        shape: Shape::from(WORDS),
    })
}

/// FNV-1a, so that the hash is the same in every build.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hash(u64);

impl Hash {
    pub fn new() -> Self {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self
    }

    pub fn number(self, number: u64) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    pub fn shape(self, shape: &Shape) -> Self {
        shape.dims().iter().fold(self.number(shape.ndim() as u64), |hash, &n| hash.number(n as u64))
    }

    pub fn finish(self) -> u64 {
        self.0
    }
}
