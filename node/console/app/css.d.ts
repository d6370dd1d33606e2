// Class names of CSS modules, under the compiler's strictest reading: a name may be missing.
declare module "*.module.css" {
  const names: Readonly<Record<string, string>>;
  export default names;
}
