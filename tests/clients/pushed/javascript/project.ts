// Project of all functions here.
import { projects } from "braintrust";
import { projectName } from "./name";

export const project = projects.create({ name: projectName });
