//! Table of routes, which registers them with actix-web and lists them for the OpenAPI document.
//!
//! The functions resemble those of actix-web.

use assay_node_http::openapi::Operation;
use assay_node_http::web::{self, FromRequest, Handler, Resource, Responder, Route, ServiceConfig};

/// Registry of routes, which may only list them.
///
/// The router tries paths in order, and matches a path with parameters by a regular expression. Paths without
/// parameters are registered first, because they match faster and take precedence.
#[derive(Default)]
pub struct Routes<'c> {
    config: Option<&'c mut ServiceConfig>,
    /// Paths with parameters, which [`Routes::finish`] registers.
    patterns: Vec<Resource>,
    /// Methods and paths of the registered routes.
    pub served: Vec<(&'static str, String)>,
    pub described: Vec<Operation>,
}

impl<'c> Routes<'c> {
    pub fn of(config: &'c mut ServiceConfig) -> Routes<'c> {
        Routes { config: Some(config), ..Routes::default() }
    }

    pub fn service(&mut self, path: RoutePath) -> &mut Self {
        self.served.extend(path.methods.into_iter().map(|method| (method, path.path.clone())));
        match &mut self.config {
            Some(_) if path.path.contains('{') => self.patterns.push(path.resource),
            Some(config) => drop(config.service(path.resource)),
            None => {}
        }
        self
    }

    /// Registers the paths with parameters in their original order.
    pub fn finish(self) {
        let Some(config) = self.config else { return };
        for pattern in self.patterns {
            config.service(pattern);
        }
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

/// Path with its methods.
pub struct RoutePath {
    path: String,
    methods: Vec<&'static str>,
    resource: Resource,
}

/// Makes a path. The table of the API decides the response to its other methods.
pub fn at(path: &str) -> RoutePath {
    let resource = web::resource(path).default_service(web::to(crate::routes::unrouted));
    RoutePath { path: path.to_owned(), methods: Vec::new(), resource }
}

/// Makes a pattern for all paths below a path. The table of the API decides the response to their other methods.
pub fn at_all_below(path: &str) -> RoutePath {
    let resource = web::resource(format!("{path}/{{path:.*}}")).default_service(web::to(crate::routes::unrouted));
    RoutePath { path: format!("{path}/{{path+}}"), methods: Vec::new(), resource }
}

impl RoutePath {
    pub fn route(mut self, method_route: MethodRoute) -> RoutePath {
        self.methods.push(method_route.method);
        self.resource = self.resource.route(method_route.route);
        self
    }
}

/// Method and its handler.
pub struct MethodRoute {
    method: &'static str,
    route: Route,
}

impl MethodRoute {
    pub fn to<F, Args>(self, handler: F) -> MethodRoute
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        MethodRoute { route: self.route.to(handler), ..self }
    }
}

pub fn get() -> MethodRoute {
    MethodRoute { method: "get", route: web::get() }
}

pub fn post() -> MethodRoute {
    MethodRoute { method: "post", route: web::post() }
}

pub fn put() -> MethodRoute {
    MethodRoute { method: "put", route: web::put() }
}

pub fn patch() -> MethodRoute {
    MethodRoute { method: "patch", route: web::patch() }
}

pub fn delete() -> MethodRoute {
    MethodRoute { method: "delete", route: web::delete() }
}
