// Buttons: plain, primary for the one main action, quiet for bars, and as icons alone.
import type { ComponentProps, ReactNode } from "react";
import style from "./Button.module.css";
import { classes } from "./classes";
import { Icon, type IconName } from "./Icon";

type Look = "plain" | "primary" | "quiet";

interface ButtonProps extends Omit<ComponentProps<"button">, "className"> {
  readonly look?: Look;
  readonly icon?: IconName;
  readonly children: ReactNode;
}

export function Button({ look = "plain", icon, children, type = "button", ...rest }: ButtonProps) {
  return (
    <button {...rest} type={type} className={classes(style["button"], style[look])}>
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </button>
  );
}

interface IconButtonProps extends Omit<ComponentProps<"button">, "className" | "children"> {
  readonly icon: IconName;
  /** What it does, in words. */
  readonly label: string;
  /** The label with the key, for the tooltip, if there is a key. */
  readonly hint?: string;
}

export function IconButton({ icon, label, hint, ...rest }: IconButtonProps) {
  return (
    <button
      {...rest}
      type="button"
      className={classes(style["button"], style["quiet"], style["alone"])}
      aria-label={label}
      title={hint ?? label}
    >
      <Icon name={icon} />
    </button>
  );
}

interface ButtonLinkProps extends Omit<ComponentProps<"a">, "className"> {
  readonly look?: Look;
  readonly icon?: IconName;
  readonly children: ReactNode;
}

/** A link that looks like a button, for the main way on. */
export function ButtonLink({ look = "plain", icon, children, ...rest }: ButtonLinkProps) {
  return (
    <a {...rest} className={classes(style["button"], style[look])}>
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </a>
  );
}
