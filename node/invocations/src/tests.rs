//! Facts about invocations, with services of the tests.
