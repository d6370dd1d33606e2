// Quotes text for the languages of copied code, so that a name of any letters stays a name.

/** Whether a text can stand in copied code: no control, direction or zero-width characters, and not empty. */
export const isQuotable = (text: string): boolean =>
  text.length > 0 && !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Surrogate}]/u.test(text);

/** Quotes for a POSIX shell. */
export const shellQuoted = (text: string): string =>
  /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/**
 * Quotes for Python, JavaScript, Go, Java and C#, whose strings share this form for a text that is quotable. The escapes of
 * control characters do not: Java reads `\u000a` as the end of a line.
 */
export const programQuoted = (text: string): string => JSON.stringify(text);

/** Quotes a text that is quotable for Ruby, whose strings also read `#{..}`, `#$x` and `#@x` as code. */
export const rubyQuoted = (text: string): string => programQuoted(text).replace(/#(?=[{$@])/g, "\\#");

/** Encodes a value of `OTEL_EXPORTER_OTLP_HEADERS`, so that it is safe within double quotes of a shell as well. */
export const percentEncoded = (text: string): string =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
