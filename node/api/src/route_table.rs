//! Table of routes: each is registered with actix-web and listed, so that the OpenAPI document cannot miss one. The functions
//! are written like those of actix-web.

use assay_node_http::openapi::Operation;
use assay_node_http::web::{self, FromRequest, Handler, Resource, Responder, Route, ServiceConfig};

/// Registers routes, or only lists them.
#[derive(Default)]
pub struct Routes<'c> {
    config: Option<&'c mut ServiceConfig>,
    /// Method and path, as the router has them.
    pub served: Vec<(&'static str, String)>,
    pub described: Vec<Operation>,
}

impl<'c> Routes<'c> {
    pub fn of(config: &'c mut ServiceConfig) -> Routes<'c> {
        Routes { config: Some(config), ..Routes::default() }
    }

    pub fn service(&mut self, place: Place) -> &mut Self {
        self.served.extend(place.methods.into_iter().map(|method| (method, place.path.clone())));
        if let Some(config) = &mut self.config {
            config.service(place.resource);
        }
        self
    }

    pub fn default_service(&mut self, route: Route) {
        if let Some(config) = &mut self.config {
            config.default_service(route);
        }
    }

    /// Adds descriptions of routes if they are only listed.
    pub fn describe(&mut self, operations: impl FnOnce() -> Vec<Operation>) {
        if self.config.is_none() {
            self.described.extend(operations());
        }
    }
}

/// A path with its methods.
pub struct Place {
    path: String,
    methods: Vec<&'static str>,
    resource: Resource,
}

/// Makes a path, whose other methods are looked up in the table of the API.
pub fn at(path: &str) -> Place {
    let resource = web::resource(path).default_service(web::to(crate::routes::unrouted));
    Place { path: path.to_owned(), methods: Vec::new(), resource }
}

impl Place {
    pub fn route(mut self, way: Way) -> Place {
        self.methods.push(way.method);
        self.resource = self.resource.route(way.route);
        self
    }
}

/// A method and its handler.
pub struct Way {
    method: &'static str,
    route: Route,
}

impl Way {
    pub fn to<F, Args>(self, handler: F) -> Way
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        Way { route: self.route.to(handler), ..self }
    }
}

pub fn get() -> Way {
    Way { method: "get", route: web::get() }
}

pub fn post() -> Way {
    Way { method: "post", route: web::post() }
}

pub fn put() -> Way {
    Way { method: "put", route: web::put() }
}

pub fn patch() -> Way {
    Way { method: "patch", route: web::patch() }
}

pub fn delete() -> Way {
    Way { method: "delete", route: web::delete() }
}
