//! Builds answers whose body or age needs more care than a plain JSON document: bodies that hold a permit,
//! bodies that are written while they are sent, and answers that must not be too old.

pub(crate) mod answer_age;
pub(crate) mod held_body;
pub(crate) mod stream;
