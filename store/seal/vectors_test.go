package seal_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	gcm "github.com/tink-crypto/tink-go/v2/proto/aes_gcm_go_proto"
	tink "github.com/tink-crypto/tink-go/v2/proto/tink_go_proto"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"example.com/providerd/store/seal"
	"example.com/providerd/store/storetest/processtest"
)

const manual = "../../cmd/providerd/manual/"

// TestVectorsOfManual opens the sealed secrets of the manual, and seals them again with AES-GCM alone, by the form that
// the manual documents. Of their data keys, one was rotated, and the master key was replaced.
func TestVectorsOfManual(t *testing.T) {
	t.Parallel()
	file := processtest.Try(os.ReadFile(manual + "example-keyset.json")).Must(t)
	path := filepath.Join(t.TempDir(), "keyset.json")
	processtest.Must(t, os.WriteFile(path, file, 0o600))
	master := processtest.Try(seal.ReadMasterKeys(path)).Must(t)
	masterKeys := new(tink.Keyset)
	processtest.Must(t, protojson.Unmarshal(file, masterKeys))
	text := processtest.Try(os.ReadFile(manual + "example-secrets.txt")).Must(t)
	used := map[string]bool{}
	for row := range strings.Lines(string(text)) {
		columns := strings.Split(strings.TrimSuffix(row, "\n"), "|")
		uid, kind, secret := columns[0], columns[1], columns[5]
		sealed, databaseID, secretKeys := fromHex(t, columns[2]), fromHex(t, columns[3]), fromHex(t, columns[4])

		keys := processtest.Try(wrapped(t, master, databaseID, secretKeys).Open(master, databaseID)).Must(t)
		place := seal.Place{Row: uuid.MustParse(uid), Value: "providers.secret", Kind: kind}
		if opened, err := keys.Unseal(sealed, place); err != nil || opened.Reveal() != secret {
			t.Errorf("%s: the secret is %q: %v", uid, opened.Reveal(), err)
		}

		encrypted, dataKeys := new(tink.EncryptedKeyset), new(tink.Keyset)
		processtest.Must(t, proto.Unmarshal(secretKeys, encrypted))
		cleartext := resealed(t, masterKeys, encrypted.GetEncryptedKeyset(), databaseID)
		processtest.Must(t, proto.Unmarshal(cleartext, dataKeys))
		if got := resealed(t, dataKeys, sealed, []byte("providers.secret."+kind+"/"+uid)); string(got) != secret {
			t.Errorf("%s: AES-GCM gives %q", uid, got)
		}
		used[string(sealed[:5])] = true
	}
	if len(used) != 2 || len(master.IDs()) != 2 {
		t.Errorf("the vectors use %d data keys, and the file has %d master keys", len(used), len(master.IDs()))
	}
}

// wrapped returns secret keys beside a digest key of the same database, which the vectors lack.
func wrapped(t *testing.T, master *seal.MasterKeys, databaseID, secretKeys []byte) seal.Wrapped {
	others := processtest.Try(seal.NewKeys()).Must(t)
	both := processtest.Try(others.Wrap(master, master.PrimaryID(), databaseID)).Must(t)
	return seal.Wrapped{SecretKeys: secretKeys, DigestKey: both.DigestKey}
}

// resealed decrypts a ciphertext, checks that its nonce and its key give the same bytes again, and returns the text.
func resealed(t *testing.T, keys *tink.Keyset, sealed, associatedData []byte) []byte {
	t.Helper()
	for _, key := range keys.GetKey() {
		prefix := binary.BigEndian.AppendUint32([]byte{1}, key.GetKeyId())
		if !bytes.HasPrefix(sealed, prefix) {
			continue
		}
		material := new(gcm.AesGcmKey)
		processtest.Must(t, proto.Unmarshal(key.GetKeyData().GetValue(), material))
		block := processtest.Try(aes.NewCipher(material.GetKeyValue())).Must(t)
		sealer := processtest.Try(cipher.NewGCM(block)).Must(t)
		nonce := sealed[5:17]
		text := processtest.Try(sealer.Open(nil, nonce, sealed[17:], associatedData)).Must(t)
		if again := sealer.Seal(append(prefix, nonce...), nonce, text, associatedData); !bytes.Equal(again, sealed) {
			t.Errorf("sealed again: %x, want %x", again, sealed)
		}
		return text
	}
	t.Fatalf("no key made %x", sealed[:5])
	return nil
}

func fromHex(t *testing.T, text string) []byte {
	t.Helper()
	return processtest.Try(hex.DecodeString(text)).Must(t)
}

func TestRandomAlphanumericIsUniform(t *testing.T) {
	t.Parallel()
	const perCharacter = 2000
	counts := map[rune]int{}
	for _, r := range seal.RandomAlphanumeric(62 * perCharacter) {
		counts[r]++
	}
	processtest.Equal(t, len(counts), 62, "different characters")
	// Six standard deviations of the binomial distribution are about 270.
	for r, count := range counts {
		processtest.Expect(t, count >= perCharacter-270 && count <= perCharacter+270,
			"%q occurs %d times, want about %d", r, count, perCharacter)
	}
	processtest.Expect(t, regexp.MustCompile(`^[0-9A-Za-z]{40}$`).MatchString(seal.RandomAlphanumeric(40)),
		"text is not 40 letters and digits")
}
