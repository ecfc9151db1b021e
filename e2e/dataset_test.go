package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/dialect"
)

// A dataset is a public collection that judges us. None of it is part of this
// repository: a variable names the folder where it lies, as CONTRIBUTING.md
// says, and a small collection of our own in the same form is judged anyway.
type dataset struct {
	variable string // names the folder
	sample   string // our own, below testdata
	digest   string // of the files, as the pinned commit has them
	inside   string // the part of the folder that counts, a slash path; all of it when empty
	without  string // a file that does not count: not everybody gets it
}

// The commits that the digests were taken from stand in CONTRIBUTING.md.
var (
	maskBench = dataset{"DRAGOMAN_MASKBENCH", "maskbench", "afe49b585c6c1e0f", "", "JsonSchemaStore---cloudformation.schema.json"}
	bfcl      = dataset{"DRAGOMAN_BFCL", "bfcl", "48158bc923ff8202", "", ""}
	suite     = dataset{"DRAGOMAN_SCHEMA_SUITE", "suite", "6d9d9356dbbc9fc8", "tests", ""}
)

// folders returns the folders to judge: our sample, and the public data where
// it is there. Data that differ from the pinned commit are judged all the same,
// and loudly.
func (d dataset) folders(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"sample": filepath.Join("testdata", d.sample)}
	dir := os.Getenv(d.variable)
	if dir == "" {
		t.Logf("%s is not set: only the sample in testdata/%s is judged", d.variable, d.sample)
		return all
	}
	if got := digest(t, filepath.Join(dir, d.inside), d.without); got != d.digest {
		t.Logf("%s holds other data than the pinned commit: digest %s, want %s. Figures cannot be compared.", d.variable, got, d.digest)
	}
	all["public"] = dir
	return all
}

// digest sums up the names and contents of the JSON files below a folder, without
// those of one name.
func digest(t *testing.T, dir, without string) string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".json") && d.Name() != without {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	sum := sha256.New()
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(sum, "%s\x00%d\x00", filepath.ToSlash(name), len(b))
		sum.Write(b)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// judgedDialects are the dialects to judge: all, or those that
// DRAGOMAN_JUDGE_DIALECTS names, with commas.
func judgedDialects() []string {
	if chosen := os.Getenv("DRAGOMAN_JUDGE_DIALECTS"); chosen != "" {
		return strings.Split(chosen, ",")
	}
	return dialect.Names()
}

// everyNth is which part of public data to judge: all, or each nth file or case,
// where DRAGOMAN_JUDGE_EVERY says n.
func everyNth(t *testing.T, kind string) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("DRAGOMAN_JUDGE_EVERY"))
	if err != nil || n < 2 || kind == "sample" {
		return 1
	}
	t.Logf("only every %dth part of the data is judged", n)
	return n
}
