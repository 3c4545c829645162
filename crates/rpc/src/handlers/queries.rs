//! Queries about code, which a kernel answers. Nothing runs.

use super::call::Call;
use mainstay_engine::CoverageQuestion;
use mainstay_model::{Binding, Bundle, CommId, Coverage, Diagnostic, Error};
use mainstay_protocol::operations::{
    Check, Complete, Explore, FindSymbols, GetCoverage, Inspect, IsComplete, ListComms, ListTests,
    ListValues, ReviewCode, ScaffoldTest, Scaffolded,
};
use mainstay_runner::Completions;
use mainstay_runner::query::{Completeness, KernelQuery, Members, Review, SYMBOLS, Symbols, Tests};
use mainstay_scaffold::{ScaffoldRequest, scaffolded};
use std::collections::BTreeMap;

pub(crate) async fn check(call: Call, asked: Check) -> Result<Vec<Diagnostic>, Error> {
    let Check { session, code, file } = asked;
    call.client.check(call.resolve(&session).await?, code, file).await
}

pub(crate) async fn scaffold(call: Call, asked: ScaffoldTest) -> Result<Scaffolded, Error> {
    let ScaffoldTest { session, name, signature, framework, inverse } = asked;
    let asked = ScaffoldRequest { name, signature, framework, inverse };
    scaffolded(&call.client, call.resolve(&session).await?, asked).await
}

pub(crate) async fn complete(call: Call, asked: Complete) -> Result<Completions, Error> {
    let Complete { session, code, cursor } = asked;
    call.client.complete(call.resolve(&session).await?, code, cursor).await
}

pub(crate) async fn review(call: Call, asked: ReviewCode) -> Result<Review, Error> {
    let ReviewCode { session, code } = asked;
    let query = KernelQuery::Review { code };
    call.client.query(call.resolve(&session).await?, query).await?.review()
}

pub(crate) async fn is_complete(call: Call, asked: IsComplete) -> Result<Completeness, Error> {
    let IsComplete { session, code } = asked;
    let query = KernelQuery::Completeness { code };
    call.client.query(call.resolve(&session).await?, query).await?.completeness()
}

pub(crate) async fn inspect(call: Call, asked: Inspect) -> Result<Option<Bundle>, Error> {
    let Inspect { session, code, cursor, in_detail } = asked;
    let query = KernelQuery::Inspection { code, cursor, in_detail };
    call.client.query(call.resolve(&session).await?, query).await?.inspection()
}

pub(crate) async fn comms(call: Call, asked: ListComms) -> Result<BTreeMap<CommId, String>, Error> {
    let ListComms { session, target } = asked;
    let query = KernelQuery::Comms { target };
    call.client.query(call.resolve(&session).await?, query).await?.comms()
}

pub(crate) async fn explore(call: Call, asked: Explore) -> Result<Members, Error> {
    let Explore { session, name } = asked;
    let query = KernelQuery::Members { name };
    call.client.query(call.resolve(&session).await?, query).await?.members()
}

pub(crate) async fn symbols(call: Call, asked: FindSymbols) -> Result<Symbols, Error> {
    let FindSymbols { session, text, limit } = asked;
    let query = KernelQuery::Symbols { text, limit: limit.unwrap_or(SYMBOLS) };
    call.client.query(call.resolve(&session).await?, query).await?.symbols()
}

pub(crate) async fn values(call: Call, asked: ListValues) -> Result<Vec<Binding>, Error> {
    let ListValues { session } = asked;
    let query = KernelQuery::Values;
    call.client.query(call.resolve(&session).await?, query).await?.values()
}

pub(crate) async fn tests(call: Call, asked: ListTests) -> Result<Tests, Error> {
    let ListTests { session, pattern, category } = asked;
    let query = KernelQuery::Tests { pattern, category };
    call.client.query(call.resolve(&session).await?, query).await?.tests()
}

pub(crate) async fn coverage(call: Call, asked: GetCoverage) -> Result<Coverage, Error> {
    let GetCoverage { session, file, name, measure } = asked;
    call.client.coverage(call.resolve(&session).await?, CoverageQuestion { file, name, measure }).await
}
