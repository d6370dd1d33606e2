// The addresses that screens link to. The route table writes them, so that screens need not know each other.
import { createContext, useContext } from "react";

export interface Links {
  start(): string;
  signIn(next: string): string;
  home(organization: string, project?: string): string;
  welcome(organization: string, project?: string): string;
}

const Context = createContext<Links | null>(null);

export const LinksProvider = Context.Provider;

export function useLinks(): Links {
  const links = useContext(Context);
  if (links === null) throw new Error("A screen was shown outside the page's frame.");
  return links;
}
