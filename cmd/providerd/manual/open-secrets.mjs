// Decrypts secrets with Node alone: node open-secrets.mjs KEYSET-FILE <ROWS
// Each row is uid|kind|secret|database_id|secret_keys, with bytes in hexadecimal, as psql prints it. The output is
// uid|secret.
import { createDecipheriv } from "node:crypto";
import { readFileSync } from "node:fs";

function fail(sentence) {
  console.error(sentence);
  process.exit(1);
}

/** Decrypts the byte 1, a key's id (4 bytes), a nonce (12 bytes), the encrypted text and its tag (16 bytes). */
function decrypt(keys, sealed, associatedData) {
  const id = sealed.readUInt32BE(1);
  if (!keys.has(id)) {
    fail(`no key has the id ${id}; pass the keyset file of the database`);
  }
  const decipher = createDecipheriv("aes-256-gcm", keys.get(id), sealed.subarray(5, 17), { authTagLength: 16 });
  decipher.setAAD(associatedData).setAuthTag(sealed.subarray(-16));
  return Buffer.concat([decipher.update(sealed.subarray(17, -16)), decipher.final()]);
}

/** Returns the fields of a Protocol Buffers message of numbers and bytes: pairs of a field's number and its value. */
function fields(message) {
  let at = 0;
  const number = () => {
    for (let value = 0, unit = 1; ; unit *= 128) {
      const byte = message.readUInt8(at++);
      value += (byte % 128) * unit;
      if (byte < 128) {
        return value;
      }
    }
  };
  const found = [];
  while (at < message.length) {
    const tag = number();
    const value = number();
    const isBytes = tag % 8 === 2;
    found.push([tag >> 3, isBytes ? message.subarray(at, (at += value)) : value]);
  }
  return found;
}

const field = (message, number) => Object.fromEntries(fields(message))[number];

/** Returns the keys of a Tink keyset by their ids. */
function keysOf(keyset) {
  const keys = fields(keyset).filter(([number]) => number === 2);
  return new Map(keys.map(([, key]) => [field(key, 3), field(field(field(key, 1), 2), 3)]));
}

/** Returns the master keys in a keyset file by their ids. */
function masterKeysIn(file) {
  try {
    const { key } = JSON.parse(readFileSync(file, "utf8"));
    return new Map(key.map(({ keyId, keyData }) => [keyId, field(Buffer.from(keyData.value, "base64"), 3)]));
  } catch (error) {
    return fail(`${file} is not a keyset file: ${error.message}`);
  }
}

/** Returns the secret of a row after its uid. */
function open(masterKeys, row) {
  const [uid, kind, ...columns] = row.split("|");
  const [secret, databaseId, secretKeys] = columns.map((column) => Buffer.from(column, "hex"));
  const keys = keysOf(decrypt(masterKeys, field(secretKeys, 2), databaseId));
  return `${uid}|${decrypt(keys, secret, Buffer.from(`providers.secret.${kind}/${uid}`))}`;
}

if (process.argv.length !== 3) {
  fail("usage: node open-secrets.mjs KEYSET-FILE <ROWS");
}
const masterKeys = masterKeysIn(process.argv[2]);
const rows = readFileSync(0, "utf8").split("\n").filter(Boolean);
for (const [index, row] of rows.entries()) {
  try {
    console.log(open(masterKeys, row));
  } catch {
    fail(`row ${index + 1} is incomplete, or has values of several rows; print rows with psql --no-align --tuples-only`);
  }
}
