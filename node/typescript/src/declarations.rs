//! Statements that exist only for the type checker, and vanish as a whole.

use oxc_allocator::Vec as ArenaVec;
use oxc_ast::ast::{
    Declaration, ExportDefaultDeclarationKind, ExportSpecifier, Function, ImportDeclaration,
    ImportDeclarationSpecifier, Statement, TSNamespaceDeclaration, TSNamespaceDeclarationBody,
};

/// Whether a statement has no effect at run time.
pub(crate) fn is_type_only(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::ImportDeclaration(import) => is_type_import(import),
        Statement::ExportAllDeclaration(export) => export.export_kind.is_type(),
        Statement::ExportNamedDeclaration(export) => export.export_kind.is_type() || all_are_types(&export.specifiers),
        Statement::ExportFromDeclaration(export) => export.export_kind.is_type() || all_are_types(&export.specifiers),
        Statement::ExportDeclaration(export) => is_type_declaration(&export.declaration),
        Statement::ExportDefaultDeclaration(export) => match &export.declaration {
            ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => true,
            ExportDefaultDeclarationKind::FunctionDeclaration(function) => is_bodiless(function),
            _ => false,
        },
        Statement::TSNamespaceExportDeclaration(_) => true,
        other => other.as_declaration().is_some_and(is_type_declaration),
    }
}

fn is_type_declaration(declaration: &Declaration<'_>) -> bool {
    match declaration {
        Declaration::TSTypeAliasDeclaration(_)
        | Declaration::TSInterfaceDeclaration(_)
        | Declaration::TSGlobalDeclaration(_)
        | Declaration::TSExternalModuleDeclaration(_) => true,
        Declaration::TSNamespaceDeclaration(namespace) => namespace.declare || !has_values(namespace),
        Declaration::TSEnumDeclaration(r#enum) => r#enum.declare,
        Declaration::TSImportEqualsDeclaration(import) => import.import_kind.is_type(),
        Declaration::VariableDeclaration(variables) => variables.declare,
        Declaration::FunctionDeclaration(function) => is_bodiless(function),
        Declaration::ClassDeclaration(class) => class.declare,
    }
}

/// Whether a function is an overload or declared elsewhere.
pub(crate) fn is_bodiless(function: &Function<'_>) -> bool {
    function.declare || function.body.is_none()
}

fn has_values(namespace: &TSNamespaceDeclaration<'_>) -> bool {
    match &namespace.body {
        TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) => has_values(inner),
        TSNamespaceDeclarationBody::TSModuleBlock(block) => {
            !block.directives.is_empty() || block.body.iter().any(is_value_of_namespace)
        }
    }
}

fn is_value_of_namespace(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::TSTypeAliasDeclaration(_) | Statement::TSInterfaceDeclaration(_) => false,
        // an alias, which counts only where it is exported
        Statement::TSImportEqualsDeclaration(_) => false,
        Statement::TSNamespaceDeclaration(inner) => has_values(inner),
        Statement::ExportDeclaration(export) => match &export.declaration {
            Declaration::TSTypeAliasDeclaration(_) | Declaration::TSInterfaceDeclaration(_) => false,
            Declaration::TSNamespaceDeclaration(inner) => has_values(inner),
            Declaration::TSImportEqualsDeclaration(import) => !import.import_kind.is_type(),
            _ => true,
        },
        _ => true,
    }
}

/// Whether an import names only types. The package with the types need not exist at run time.
fn is_type_import(import: &ImportDeclaration<'_>) -> bool {
    let all_are_types = |specifiers: &ArenaVec<'_, ImportDeclarationSpecifier<'_>>| {
        !specifiers.is_empty()
            && specifiers.iter().all(|specifier| {
                matches!(specifier, ImportDeclarationSpecifier::ImportSpecifier(named) if named.import_kind.is_type())
            })
    };
    import.import_kind.is_type() || import.specifiers.as_ref().is_some_and(all_are_types)
}

fn all_are_types(specifiers: &ArenaVec<'_, ExportSpecifier<'_>>) -> bool {
    !specifiers.is_empty() && specifiers.iter().all(|specifier| specifier.export_kind.is_type())
}
