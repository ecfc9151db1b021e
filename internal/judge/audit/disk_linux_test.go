package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// childDisk names the variable that tells a process to be the one whose disk fails.
const childDisk = "DRAGOMAN_AUDIT_DISK"

func init() {
	if path := os.Getenv(childDisk); path != "" {
		if err := failingDisk(path); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// TestDiskFails: when writing to the disk fails halfway (a limit on the size of
// files stands for it: the system refuses the write), intents fail and reading goes
// on; when the disk works again so does the log, and nothing that was acknowledged
// is missing (fault 28). It is a process of its own, since the limit is one of the
// process.
func TestDiskFails(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDisk+"="+filepath.Join(t.TempDir(), "audit.db"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func failingDisk(path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	db, err := store.Open(context.Background(), store.Config{Path: path})
	if err != nil {
		return err
	}
	ctx := context.Background()
	l := New(db, Config{Arguments: Full}, nil)
	for round := range 3 {
		written, err := untilDiskFails(ctx, l, round)
		if err != nil {
			return err
		}
		l.Append(large("lost"))
		if err := l.Intent(ctx, large("refused")); err == nil {
			return errors.New("an intent is acknowledged although the disk fails")
		}
		there, err := l.Find(ctx, Filter{Kind: Intent, Call: fmt.Sprint("round-", round)})
		if err != nil || len(there) != written {
			return fmt.Errorf("while the disk fails %d of %d records can be read: %w", len(there), written, err)
		}
		if err := limitFiles(syscall.RLIM_INFINITY & (1<<63 - 1)); err != nil {
			return err
		}
		if err := l.Intent(ctx, intent("again")); err != nil {
			return fmt.Errorf("the disk works again, and the log does not: %w", err)
		}
		check, err := l.Verify(ctx)
		if err != nil {
			return err
		}
		if gap, err := l.Find(ctx, Filter{Kind: Gap}); err != nil || len(gap) != round+1 || gap[0].Count != 1 {
			return fmt.Errorf("the gaps are %+v, %v", gap, err)
		}
		if n, _ := l.Failures(); n == 0 || check.Records == 0 {
			return errors.New("nobody noticed")
		}
	}
	return db.Close()
}

// untilDiskFails writes until the disk refuses, and returns how many were written.
func untilDiskFails(ctx context.Context, l *Log, round int) (n int, err error) {
	info, err := os.Stat(l.db.String() + "-wal")
	if err != nil {
		return 0, err
	}
	if err := limitFiles(uint64(info.Size()) + 300<<10 + 1234); err != nil {
		return 0, err
	}
	r := large(fmt.Sprint("round-", round))
	for ; n < 10_000; n++ {
		if err := l.Intent(ctx, r); err != nil {
			return n, nil
		}
	}
	return n, errors.New("the disk never failed")
}

// large is an intent that does not fit where an equal one did not.
func large(call string) Record {
	r := intent(call)
	r.Arguments = json.RawMessage(`{"a":"` + strings.Repeat("x", 20<<10) + `"}`)
	return r
}

func limitFiles(size uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	limit.Cur = min(size, limit.Max)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
}
