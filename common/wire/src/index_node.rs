//! Calls to a node of tier 2 in another process.
//!
//! [`RemoteNode`] is the client for the router, and [`serve`] is the server of the node. A signature that
//! both sides have is not sent. A node stores a page before the router requests a search for it, and the
//! router keeps the signature of a search that it requests.

use std::sync::Arc;
use std::time::Duration;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, Incarnation, PageId, RangeId};
use doppel_partitioning::LengthVector;
use doppel_protocol::index_node::{
    AppliedState, BATCH_BYTES_MAX, CallContext, EntriesPage, EntriesRequest, HostingPlan, IndexNode,
    IngestAnswer, IngestBatch, NodeError, NodeLoadReport, NodeSearch, OrderBatch, SampleAnswer,
    SampleRequest, SearchBatch, SearchLimits, SearchOutcome,
};
use doppel_protocol::{LogPosition, Repeat, VerifiedPartner};
use serde::{Deserialize, Serialize};

use crate::transport::call::{calls, with};
use crate::transport::listener::CallListener;
use crate::transport::peer::Peer;
use crate::transport::wire_error::WireError;

/// Maximum size of a body that is full of signatures, in bytes.
const SIGNATURES_BYTES_MAX: usize = BATCH_BYTES_MAX + BATCH_BYTES_MAX / 4;

/// Maximum size of a body with the lexicon of a plan, in bytes. The lexicon has an entry for each of the most
/// frequent words.
const PLAN_BYTES_MAX: usize = 32 << 20;

/// Maximum number of searches in one call. They finish long before the deadline.
const SEARCHES_MAX: usize = 1_024;

/// Deadline of a call that may read everything on the node.
const LONG: Duration = Duration::from_secs(600);

calls! {
    Host = "index-node/host": HostingPlan => Result<Incarnation, NodeError>
        { REQUEST_BYTES_MAX: usize = PLAN_BYTES_MAX, DEADLINE: Duration = LONG };
    AppliedCall = "index-node/applied": RangeId => Result<AppliedState, NodeError>;
    Apply = "index-node/apply": (CallContext, OrderBatch) => Result<AppliedState, NodeError>
        { REQUEST_BYTES_MAX: usize = SIGNATURES_BYTES_MAX, DEADLINE: Duration = Duration::from_secs(120) };
    Search = "index-node/search": (CallContext, SentBatch) => Result<Vec<SentOutcome>, NodeError>
        {
            REQUEST_BYTES_MAX: usize = SIGNATURES_BYTES_MAX,
            ANSWER_BYTES_MAX: usize = SIGNATURES_BYTES_MAX,
            DEADLINE: Duration = Duration::from_secs(300),
        };
    Entries = "index-node/entries": (CallContext, EntriesRequest) => Result<EntriesPage, NodeError>
        { ANSWER_BYTES_MAX: usize = SIGNATURES_BYTES_MAX, DEADLINE: Duration = Duration::from_secs(120) };
    Ingest = "index-node/ingest": (CallContext, IngestBatch) => Result<IngestAnswer, NodeError>
        { REQUEST_BYTES_MAX: usize = SIGNATURES_BYTES_MAX, DEADLINE: Duration = LONG };
    DropPartition = "index-node/drop-partition": (CallContext, u64) => Result<bool, NodeError>
        { DEADLINE: Duration = Duration::from_secs(120) };
    Save = "index-node/save": (CallContext, Vec<(RangeId, LogPosition)>) => Result<(), NodeError>
        { DEADLINE: Duration = LONG };
    Load = "index-node/load": CallContext => Result<NodeLoadReport, NodeError>
        { ANSWER_BYTES_MAX: usize = 16 << 20 };
    Sample = "index-node/sample": (CallContext, SampleRequest) => Result<SampleAnswer, NodeError>
        { ANSWER_BYTES_MAX: usize = SIGNATURES_BYTES_MAX, DEADLINE: Duration = Duration::from_secs(120) };
    Repeats = "index-node/repeats": (CallContext, RangeId, u64) => Result<Vec<Repeat>, NodeError>;
    AcknowledgeRepeats = "index-node/acknowledge-repeats": (CallContext, RangeId, u64) => Result<(), NodeError>;
}

/// A [`SearchBatch`] without the signatures that both sides have.
#[derive(Serialize, Deserialize)]
pub(crate) struct SentBatch {
    pass: Option<SearchLimits>,
    searches: Vec<SentSearch>,
}

#[derive(Serialize, Deserialize)]
enum SentSearch {
    Own { page: PageId, content: ContentHash, has_signature: bool },
    Foreign { signature: Arc<Signature>, lengths: LengthVector },
}

/// A [`SearchOutcome`] without the signatures that both sides have.
#[derive(Serialize, Deserialize)]
pub(crate) enum SentOutcome {
    Unfinished {
        begun: bool,
    },
    Absent,
    Copy(VerifiedPartner),
    Compared {
        pairs: Vec<VerifiedPartner>,
        probed: u32,
        /// The signature is `None` if the caller has it.
        subject: Option<(Option<Arc<Signature>>, LengthVector)>,
    },
}

/// A node of tier 2 in another process.
#[derive(Debug, Clone)]
pub struct RemoteNode(Peer);

impl RemoteNode {
    /// Creates a client of the node that `peer` connects to.
    #[must_use]
    pub fn new(peer: Peer) -> Self {
        Self(peer)
    }

    /// Makes searches in one call. If their answers are too large, makes two calls with half of the searches
    /// each.
    fn search_some(
        &self,
        call: CallContext,
        pass: Option<SearchLimits>,
        searches: &[NodeSearch],
    ) -> Result<Vec<SearchOutcome>, NodeError> {
        let sent = SentBatch { pass, searches: searches.iter().map(SentSearch::of).collect() };
        match self.0.call::<Search>(&(call, sent)) {
            Ok(answer) => {
                let outcomes = answer?;
                if outcomes.len() != searches.len() {
                    let reason = format!(
                        "the node returned {} answers to {} searches",
                        outcomes.len(),
                        searches.len()
                    );
                    return Err(NodeError::Unavailable(reason));
                }
                Ok(outcomes.into_iter().zip(searches).map(|(outcome, search)| outcome.with(search)).collect())
            }
            Err(error) if error.is_answer_too_large() && searches.len() > 1 => {
                let (first, second) = searches.split_at(searches.len() / 2);
                let mut outcomes = self.search_some(call, pass, first)?;
                outcomes.extend(self.search_some(call, pass, second)?);
                Ok(outcomes)
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl From<WireError> for NodeError {
    fn from(error: WireError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl SentSearch {
    fn of(search: &NodeSearch) -> Self {
        match search {
            NodeSearch::Own { page, content, signature } => {
                Self::Own { page: *page, content: *content, has_signature: signature.is_some() }
            }
            NodeSearch::Foreign { signature, lengths } => {
                Self::Foreign { signature: Arc::clone(signature), lengths: *lengths }
            }
        }
    }
}

impl SentOutcome {
    fn of(outcome: SearchOutcome, has_signature: bool) -> Self {
        match outcome {
            SearchOutcome::Unfinished { begun } => Self::Unfinished { begun },
            SearchOutcome::Absent => Self::Absent,
            SearchOutcome::Copy(pair) => Self::Copy(pair),
            SearchOutcome::Compared { pairs, probed, subject } => {
                let subject =
                    subject.map(|(signature, lengths)| (Some(signature).filter(|_| !has_signature), lengths));
                Self::Compared { pairs, probed, subject }
            }
        }
    }

    fn with(self, search: &NodeSearch) -> SearchOutcome {
        match self {
            Self::Unfinished { begun } => SearchOutcome::Unfinished { begun },
            Self::Absent => SearchOutcome::Absent,
            Self::Copy(pair) => SearchOutcome::Copy(pair),
            Self::Compared { pairs, probed, subject } => {
                let own = match search {
                    NodeSearch::Own { signature, .. } => signature.clone(),
                    NodeSearch::Foreign { .. } => None,
                };
                let subject = subject.and_then(|(sent, lengths)| Some((own.or(sent)?, lengths)));
                SearchOutcome::Compared { pairs, probed, subject }
            }
        }
    }
}

impl IndexNode for RemoteNode {
    fn host(&self, hosting: HostingPlan) -> Result<Incarnation, NodeError> {
        self.0.call::<Host>(&hosting)?
    }

    fn applied(&self, range: RangeId) -> Result<AppliedState, NodeError> {
        self.0.call::<AppliedCall>(&range)?
    }

    fn apply(&self, call: CallContext, batch: OrderBatch) -> Result<AppliedState, NodeError> {
        self.0.call::<Apply>(&(call, batch))?
    }

    fn search(&self, call: CallContext, batch: SearchBatch) -> Result<Vec<SearchOutcome>, NodeError> {
        let mut outcomes = Vec::with_capacity(batch.searches.len());
        for some in batch.searches.chunks(SEARCHES_MAX) {
            // The node has reached the limit of the pass.
            if outcomes.last() == Some(&SearchOutcome::Unfinished { begun: false }) {
                outcomes.resize(batch.searches.len(), SearchOutcome::Unfinished { begun: false });
                break;
            }
            outcomes.extend(self.search_some(call, batch.pass, some)?);
        }
        Ok(outcomes)
    }

    fn entries(&self, call: CallContext, request: EntriesRequest) -> Result<EntriesPage, NodeError> {
        self.0.call::<Entries>(&(call, request))?
    }

    fn ingest(&self, call: CallContext, batch: IngestBatch) -> Result<IngestAnswer, NodeError> {
        self.0.call::<Ingest>(&(call, batch))?
    }

    fn drop_partition(&self, call: CallContext, limit: usize) -> Result<bool, NodeError> {
        self.0.call::<DropPartition>(&(call, limit as u64))?
    }

    fn save(&self, call: CallContext, moments: Vec<(RangeId, LogPosition)>) -> Result<(), NodeError> {
        self.0.call::<Save>(&(call, moments))?
    }

    fn load(&self, call: CallContext) -> Result<NodeLoadReport, NodeError> {
        self.0.call::<Load>(&call)?
    }

    fn sample(&self, call: CallContext, request: SampleRequest) -> Result<SampleAnswer, NodeError> {
        match (self.0.call::<Sample>(&(call, request.clone())), request) {
            (Ok(sampled), _) => sampled,
            // The answer was too large: request half of the contents in each of two calls.
            (Err(error), SampleRequest::Signatures(contents))
                if error.is_answer_too_large() && contents.len() > 1 =>
            {
                let (first, second) = contents.split_at(contents.len() / 2);
                let mut signatures = Vec::new();
                for some in [first, second] {
                    match self.sample(call, SampleRequest::Signatures(some.to_vec()))? {
                        SampleAnswer::Signatures(found) => signatures.extend(found),
                        other => return Ok(other),
                    }
                }
                Ok(SampleAnswer::Signatures(signatures))
            }
            (Err(error), _) => Err(error.into()),
        }
    }

    fn repeats(&self, call: CallContext, range: RangeId, after: u64) -> Result<Vec<Repeat>, NodeError> {
        self.0.call::<Repeats>(&(call, range, after))?
    }

    fn acknowledge_repeats(&self, call: CallContext, range: RangeId, through: u64) -> Result<(), NodeError> {
        self.0.call::<AcknowledgeRepeats>(&(call, range, through))?
    }
}

/// Adds the calls of a node to a listener.
#[must_use]
pub fn serve(listener: CallListener, node: &Arc<dyn IndexNode>) -> CallListener {
    listener
        .answer::<Host>(with!(node, |node, hosting| node.host(hosting)))
        .answer::<AppliedCall>(with!(node, |node, range| node.applied(range)))
        .answer::<Apply>(with!(node, |node, (call, batch)| node.apply(call, batch)))
        .answer::<Search>(with!(node, |node, (call, batch)| search(&*node, call, batch)))
        .answer::<Entries>(with!(node, |node, (call, request)| node.entries(call, request)))
        .answer::<Ingest>(with!(node, |node, (call, batch)| node.ingest(call, batch)))
        .answer::<DropPartition>(with!(node, |node, (call, limit)| {
            node.drop_partition(call, usize::try_from(limit).unwrap_or(usize::MAX))
        }))
        .answer::<Save>(with!(node, |node, (call, moments)| node.save(call, moments)))
        .answer::<Load>(with!(node, |node, call| node.load(call)))
        .answer::<Sample>(with!(node, |node, (call, request)| node.sample(call, request)))
        .answer::<Repeats>(with!(node, |node, (call, range, after)| node.repeats(call, range, after)))
        .answer::<AcknowledgeRepeats>(with!(node, |node, (call, range, through)| {
            node.acknowledge_repeats(call, range, through)
        }))
}

fn search(node: &dyn IndexNode, call: CallContext, batch: SentBatch) -> Result<Vec<SentOutcome>, NodeError> {
    let SentBatch { pass, searches: sent } = batch;
    let mut has_signature = Vec::with_capacity(sent.len());
    let searches = sent.into_iter().map(|search| match search {
        SentSearch::Own { page, content, has_signature: has_own } => {
            has_signature.push(has_own);
            NodeSearch::Own { page, content, signature: None }
        }
        SentSearch::Foreign { signature, lengths } => {
            has_signature.push(false);
            NodeSearch::Foreign { signature, lengths }
        }
    });
    let batch = SearchBatch { pass, searches: searches.collect() };
    let outcomes = node.search(call, batch)?;
    Ok(outcomes.into_iter().zip(has_signature).map(|(outcome, has)| SentOutcome::of(outcome, has)).collect())
}
