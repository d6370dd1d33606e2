// Signs out, here or everywhere, and goes to the sign-in.
import { problemOf } from "../lib/errors";
import { leaveSession } from "../api/queries";
import { toast } from "../design/Toast";
import { navigate } from "../lib/router";
import { links } from "../routes";

export async function leave(isEverywhere: boolean): Promise<void> {
  try {
    await leaveSession(isEverywhere);
  } catch (error) {
    toast(`Signing out failed. ${problemOf(error, 0).text}`, true);
    return;
  }
  navigate(links.signIn(links.start()), "push");
}
