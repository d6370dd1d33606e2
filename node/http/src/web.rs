//! Types of actix-web that handlers use. Handler crates import them from here, so only this crate names the framework.

pub use actix_web::body::BoxBody;
pub use actix_web::dev::Handler;
pub use actix_web::http::header::{self, HeaderMap};
pub use actix_web::http::{Method, StatusCode, Version};
pub use actix_web::rt::spawn;
pub use actix_web::test::TestRequest;
pub use actix_web::web::{
    Bytes, BytesMut, Data, Payload, Query, ServiceConfig, delete, get, patch, post, put, resource, to,
};
pub use actix_web::{FromRequest, HttpRequest, HttpResponse, HttpResponseBuilder, Resource, Responder, Route};
