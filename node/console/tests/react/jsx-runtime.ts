// Makes elements of React whose components are drawn again when a signal changes that they have read.
import { Fragment, jsx as make, jsxs as makeMany } from "react/jsx-runtime";
import type { ElementType, Key, ReactElement } from "react";
import { tracked } from "./tracked";

export { Fragment };

export const jsx = (type: ElementType, props: unknown, key?: Key): ReactElement => make(tracked(type), props, key);

export const jsxs = (type: ElementType, props: unknown, key?: Key): ReactElement => makeMany(tracked(type), props, key);
