// How `npm run pictures` and `npm run album` run: as the flows do.
import { mergeConfig } from "vitest/config";
import flows from "./vitest.flows.config.ts";

const pictures = mergeConfig(flows, {});
pictures.test = { ...pictures.test, include: ["tests/{pictures,album}/*.picture.ts"], testTimeout: 600_000 };

export default pictures;
