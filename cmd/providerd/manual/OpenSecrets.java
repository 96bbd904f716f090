// Decrypts secrets with the JDK alone, 17 or newer: java OpenSecrets.java KEYSET-FILE <ROWS
// Each row is uid|kind|secret|database_id|secret_keys, with bytes in hexadecimal, as psql prints it. The output is
// uid|secret.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

class OpenSecrets {
  /** A field of a Protocol Buffers message: a number, or bytes. */
  record Field(int number, long value, byte[] bytes) {}

  public static void main(String[] arguments) {
    if (arguments.length != 1) {
      fail("usage: java OpenSecrets.java KEYSET-FILE <ROWS");
    }
    Map<Long, byte[]> masterKeys = masterKeysIn(arguments[0]);
    var output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    int number = 0;
    for (String row : input.lines().toList()) {
      number++;
      try {
        output.println(open(masterKeys, row.split("\\|")));
      } catch (GeneralSecurityException | RuntimeException error) {
        fail("row " + number + " is incomplete, or has values of several rows; print rows with psql --no-align --tuples-only");
      }
    }
  }

  static void fail(String sentence) {
    System.err.println(sentence);
    System.exit(1);
  }

  /** Returns the master keys in a keyset file by their ids. */
  static Map<Long, byte[]> masterKeysIn(String file) {
    Map<Long, byte[]> masterKeys = new HashMap<>();
    try {
      // Each key has one value, in Base64, before its id.
      var key = Pattern.compile("\"value\":\\s*\"([^\"]*)\".*?\"keyId\":\\s*(\\d+)", Pattern.DOTALL)
          .matcher(Files.readString(Path.of(file)));
      while (key.find()) {
        byte[] value = Base64.getDecoder().decode(key.group(1));
        masterKeys.put(Long.valueOf(key.group(2)), field(value, 3).bytes);
      }
    } catch (IOException | RuntimeException error) {
      fail(file + " is not a keyset file: " + error);
    }
    return masterKeys;
  }

  /** Returns the secret of a row after its uid. */
  static String open(Map<Long, byte[]> masterKeys, String[] columns) throws GeneralSecurityException {
    byte[] secret = bytes(columns[2]), databaseID = bytes(columns[3]), secretKeys = bytes(columns[4]);
    Map<Long, byte[]> keys = keysOf(decrypt(masterKeys, field(secretKeys, 2).bytes, databaseID));
    byte[] place = ("providers.secret." + columns[1] + "/" + columns[0]).getBytes(StandardCharsets.UTF_8);
    return columns[0] + "|" + new String(decrypt(keys, secret, place), StandardCharsets.UTF_8);
  }

  static byte[] bytes(String hexadecimal) {
    return HexFormat.of().parseHex(hexadecimal);
  }

  /** Decrypts the byte 1, a key's id (4 bytes), a nonce (12 bytes), the encrypted text and its tag (16 bytes). */
  static byte[] decrypt(Map<Long, byte[]> keys, byte[] sealed, byte[] associatedData) throws GeneralSecurityException {
    long id = Integer.toUnsignedLong(ByteBuffer.wrap(sealed).getInt(1));
    if (!keys.containsKey(id)) {
      fail("no key has the id " + id + "; pass the keyset file of the database");
    }
    Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
    cipher.init(Cipher.DECRYPT_MODE, new SecretKeySpec(keys.get(id), "AES"), new GCMParameterSpec(128, sealed, 5, 12));
    cipher.updateAAD(associatedData);
    return cipher.doFinal(sealed, 17, sealed.length - 17);
  }

  /** Returns the keys of a Tink keyset by their ids. */
  static Map<Long, byte[]> keysOf(byte[] keyset) {
    Map<Long, byte[]> keys = new HashMap<>();
    for (Field key : fields(keyset)) {
      if (key.number == 2) {
        byte[] data = field(key.bytes, 1).bytes;
        keys.put(field(key.bytes, 3).value, field(field(data, 2).bytes, 3).bytes);
      }
    }
    return keys;
  }

  static Field field(byte[] message, int number) {
    return fields(message).stream().filter(field -> field.number == number).findFirst().orElseThrow();
  }

  /** Returns the fields of a message of numbers and bytes. */
  static List<Field> fields(byte[] message) {
    List<Field> found = new ArrayList<>();
    for (ByteBuffer rest = ByteBuffer.wrap(message); rest.hasRemaining(); ) {
      long tag = number(rest), value = number(rest);
      byte[] bytes = new byte[tag % 8 == 2 ? (int) value : 0];
      rest.get(bytes);
      found.add(new Field((int) tag / 8, value, bytes));
    }
    return found;
  }

  static long number(ByteBuffer from) {
    long value = 0;
    for (int shift = 0; ; shift += 7) {
      byte next = from.get();
      value |= (long) (next & 127) << shift;
      if (next >= 0) {
        return value;
      }
    }
  }
}
