// The address of the page that shows how to send traces.
import { choiceParameter, screenAddress, textParameter, type Codec } from "../../lib/address";

export const LANGUAGES = ["python", "typescript", "go", "ruby", "java", "csharp", "otlp", "grpc", "curl"] as const;

export type Language = (typeof LANGUAGES)[number];

export interface WelcomeState {
  /** The name of the organization; empty for the first one of the person. */
  readonly organization: string;
  /** The name of the project that the code names; empty for the newest one. */
  readonly project: string;
  readonly language: Language;
}

export const welcomeDefaults: WelcomeState = { organization: "", project: "", language: "python" };

export const welcomeUrl: Codec<WelcomeState> = {
  read: ({ segments, rawFirst, query }) =>
    segments.length === 1 && rawFirst === "welcome"
      ? {
          organization: textParameter(query, "org"),
          project: textParameter(query, "project"),
          language: choiceParameter(query, "lang", LANGUAGES, "python"),
        }
      : null,
  write: ({ organization, project, language }) =>
    screenAddress(
      ["welcome"],
      [
        ["org", organization, ""],
        ["project", project, ""],
        ["lang", language, "python"],
      ],
    ),
};
