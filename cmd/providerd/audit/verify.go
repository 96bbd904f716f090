package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/store"
)

// ErrDiffers means that nothing failed, but the database differs from what was kept.
var ErrDiffers = errors.New("the database differs")

// VerifyCommand is "providerd audit verify" with its flags.
type VerifyCommand struct {
	flags.DatabaseFlags
	Against string `required:"" type:"path" placeholder:"FILE" help:"Lines that \"audit --output jsonl\" has printed, or the output of \"audit head\"."`
	flags.ListFormat
}

// Help is the long help text.
func (*VerifyCommand) Help() string {
	return "Compares the database with what was kept elsewhere. Against lines, it names each record that was changed " +
		"without an event, removed or inserted; lines may be repeated, but must not have gaps. Against heads, it reports " +
		"whether the records and changes that they cover are still the same. The exit status is 0 if nothing differs, 3 if " +
		"something differs, and 1 if the comparison failed."
}

// Run compares the database with the file.
func (c *VerifyCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	file, err := os.Open(c.Against)
	if err != nil {
		return fmt.Errorf("--against: %w", err)
	}
	defer func() { _ = file.Close() }()
	reader := bufio.NewReader(file)
	first, err := reader.Peek(1)
	if errors.Is(err, io.EOF) {
		return errors.New("--against: the file is empty")
	}
	if err != nil {
		return fmt.Errorf("--against: %w", err)
	}
	flags.KeepHeapSmall()
	return c.WithStore(ctx, func(database *store.Store) error {
		if first[0] == '{' {
			lines, err := readLines(reader)
			if err != nil {
				return err
			}
			compared := comparison{lines: lines, messages: messages}
			events := database.Log(ctx, lines.before(), lines.last())
			return compared.print(out, c.Output, events, database.Contradictions(ctx))
		}
		headsErr := verifyHeads(ctx, database, reader, messages)
		if errors.Is(headsErr, ErrDiffers) {
			return headsErr
		}
		for found, err := range database.Contradictions(ctx) {
			if err == nil {
				err = fmt.Errorf("%w: provider %d %s", ErrDiffers, found.PK, found.Detail)
			}
			return err
		}
		return headsErr
	})
}

// maxHeads limits the size of a file of heads, in bytes.
const maxHeads = 4096

// verifyHeads compares the trees with heads.
func verifyHeads(ctx context.Context, database *store.Store, from io.Reader, messages *console.Messages) error {
	text, err := io.ReadAll(io.LimitReader(from, maxHeads))
	if err != nil {
		return fmt.Errorf("--against: %w", err)
	}
	for table, body := range bytes.Split(bytes.TrimSpace(text), []byte("\n\n")) {
		kept, err := parseCheckpoint(string(body))
		if err != nil || table > store.LogChanges {
			return errors.New("--against: not the output of \"providerd audit head\", nor lines of \"audit --output jsonl\"")
		}
		if err := verifyHead(ctx, database, table, kept); err != nil {
			return err
		}
		messages.Note("%s: unchanged, size %d", kept.origin, kept.size)
	}
	return nil
}

func verifyHead(ctx context.Context, database *store.Store, table int, kept checkpoint) error {
	origin, err := originOf(ctx, database, table)
	if err != nil {
		return err
	}
	if kept.origin != origin {
		return fmt.Errorf("--against: %q is the head of another database or tree; this one is %q", kept.origin, origin)
	}
	head, err := database.HeadOf(ctx, table, math.MaxInt64, kept.size)
	switch {
	case err != nil:
		return err
	case head.Size < kept.size:
		return fmt.Errorf("%w: %s has only %d of %d leaves; records were removed, or an older backup was restored",
			ErrDiffers, origin, head.Size, kept.size)
	case head.Root.String() == kept.root:
		return nil
	case head.Damaged != nil:
		return fmt.Errorf("%w: %s: %w", ErrDiffers, origin, head.Damaged)
	case head.Unknown > 0:
		return fmt.Errorf("%s cannot be verified, because an earlier release has deleted %s; "+
			"verify against lines, which name each record", origin, console.Count(int(head.Unknown), "record"))
	default:
		return fmt.Errorf("%w: %s was rewritten below size %d; verify against lines to find the records",
			ErrDiffers, origin, kept.size)
	}
}

// parseCheckpoint parses the text of a checkpoint.
func parseCheckpoint(text string) (checkpoint, error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 3 {
		return checkpoint{}, errors.New("not three lines")
	}
	size, err := strconv.ParseUint(lines[1], 10, 63)
	if err != nil {
		return checkpoint{}, fmt.Errorf("size: %w", err)
	}
	return checkpoint{origin: lines[0], size: int64(size), root: lines[2]}, nil
}
