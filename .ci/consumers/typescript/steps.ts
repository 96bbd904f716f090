// What every generated TypeScript client is made to do.

export const baseUrl = `${process.env.PROVIDERD_SERVER}/api/v3`;
export const token = process.env.PROVIDERD_TOKEN ?? "";
export const headers = { Authorization: `Bearer ${token}` };

/** The smallest requests; they have no enumerations, because some generators demand their own constants for those. */
export const provider = (redirect_uris: string) => ({
  name: "Intranet",
  authorization_flow: "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01",
  redirect_uris,
});
export const directory = {
  name: "Staff",
  delegated_subject: "admin@example.com",
  credentials: { key: "example" },
  default_group_email_domain: "example.com",
};

export interface Options {
  key?: string;
  validate_only?: boolean;
}

/** A refusal, as the client decoded it. */
export class Refused extends Error {
  constructor(readonly problem: { errors?: { pointer: string; code: string }[] }) {
    super(JSON.stringify(problem));
  }
}

type Created = { pk: number; name: string };

/** Prints what the client returns for each step. */
export async function run(
  oauth2: (redirectUris: string, options: Options) => Promise<Created>,
  workspace: () => Promise<Created>,
): Promise<void> {
  const uris = "https://intranet.example.com/callback";
  const key = crypto.randomUUID();
  const steps: Record<string, () => Promise<Created>> = {
    oauth2: () => oauth2(uris, {}),
    workspace,
    refused: () => oauth2("javascript:alert(1)", {}),
    first: () => oauth2(uris, { key }),
    again: () => oauth2(uris, { key }),
    validated: () => oauth2(uris, { validate_only: true }),
  };
  const results: Record<string, unknown> = {};
  for (const [name, step] of Object.entries(steps)) {
    results[name] = await step().catch((error) => (error instanceof Refused ? error.problem : { failed: String(error) }));
  }
  console.log(JSON.stringify(results));
}
