package demo

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// scratchDir creates d's scratch folder inside a folder of the test.
func scratchDir(t *testing.T, d *Demo) string {
	t.Helper()
	if err := d.scratch.use(func(*os.Root) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return d.scratch.dir
}

func ownTempDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, variable := range []string{"TMPDIR", "TMP", "TEMP"} {
		t.Setenv(variable, dir)
	}
	return dir
}

func TestScratchIsLazyAndRemoved(t *testing.T) {
	tmp := ownTempDir(t)
	entries := func() int {
		t.Helper()
		list, err := os.ReadDir(tmp)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	d := New(Options{})
	s := dial(t, d, legacy, nil)
	call(t, s, "get_weather", `{"city":"Paris"}`)
	call(t, s, "analyze_csv", `{"filepath":"sales.csv"}`)
	if n := entries(); n != 0 {
		t.Fatalf("%d entries in the temporary folder before scratch was needed", n)
	}
	call(t, s, "delete_file", `{"path":"todo.md"}`)
	if n := entries(); n != 1 {
		t.Fatalf("%d entries in the temporary folder, want the scratch folder", n)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if n := entries(); n != 0 {
		t.Errorf("%d entries left in the temporary folder", n)
	}
	if err := d.scratch.use(func(*os.Root) error { return nil }); !errors.Is(err, errClosed) {
		t.Errorf("use after Close: %v, want %v", err, errClosed)
	}
}

func TestScratchThatCannotBe(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the temporary folder is not chosen by TMPDIR")
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	s := dial(t, newDemo(t), legacy, nil)
	text, _, failed := call(t, s, "delete_file", `{"path":"todo.md"}`)
	if !failed || !strings.HasPrefix(text, "Internal error in delete_file") || strings.Contains(text, "missing") {
		t.Errorf("isError %v, %s; want an internal error without its cause", failed, text)
	}
}

func TestDeleteFile(t *testing.T) {
	tmp := ownTempDir(t)
	d := newDemo(t)
	dir := scratchDir(t, d)
	outside := filepath.Join(tmp, "precious.txt")
	if err := os.WriteFile(outside, []byte("keep"), 0o600); err != nil {
		t.Fatal(err)
	}
	links := runtime.GOOS != "windows" // where making one needs a privilege
	if links {
		for name, target := range map[string]string{"out": tmp, "reports/alias.txt": outside} {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := dial(t, d, legacy, nil)

	for _, refused := range []string{
		`../precious.txt`, `reports/../../precious.txt`, outside, `out/precious.txt`,
		`reports`, `reports/`, `.`, `..`, `/`, `nothing.txt`, `notes.txt/x`, "a\x00b", `C:\Windows`, `..\precious.txt`,
	} {
		arguments, err := json.Marshal(map[string]string{"path": refused})
		if err != nil {
			t.Fatal(err)
		}
		text, _, failed := call(t, s, "delete_file", string(arguments))
		if !failed || !strings.Contains(text, "Cannot delete") || !strings.Contains(text, "notes.txt") {
			t.Errorf("%s: isError %v, %s", arguments, failed, text)
		}
	}

	text, data, failed := call(t, s, "delete_file", `{"path":"reports/./draft.txt"}`)
	if failed || !strings.Contains(data, `"deleted":"reports/draft.txt"`) {
		t.Errorf("delete: isError %v, %s", failed, text)
	}
	if _, err := os.Stat(filepath.Join(dir, "reports", "draft.txt")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	if text, _, failed := call(t, s, "delete_file", `{"path":"reports/draft.txt"}`); !failed {
		t.Errorf("deleting again succeeded: %s", text)
	}
	if links {
		// A link is a file of ours; what it points to is not.
		if text, _, failed := call(t, s, "delete_file", `{"path":"reports/alias.txt"}`); failed {
			t.Errorf("link: %s", text)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("a file outside is gone: %v", err)
	}
}

func TestDeleteEverything(t *testing.T) {
	ownTempDir(t)
	d := newDemo(t)
	s := dial(t, d, legacy, nil)
	for _, f := range samples {
		if text, _, failed := call(t, s, "delete_file", `{"path":"`+f.name+`"}`); failed {
			t.Fatal(text)
		}
	}
	if text, _, _ := call(t, s, "delete_file", `{"path":"notes.txt"}`); !strings.HasSuffix(text, "Files there: none.") {
		t.Errorf("got %s", text)
	}
}

func TestAnalyzeScratchFiles(t *testing.T) {
	ownTempDir(t)
	d := newDemo(t)
	dir := scratchDir(t, d)
	for name, text := range map[string]string{
		"empty.csv":  "",
		"header.csv": "a,b\n",
		"ragged.csv": "a,b\n1\n",
		"mixed.csv":  "a,b,c\n0.1,1e3, 7 \n0.2,x,\n",
		"large.csv":  strings.Repeat("a\n", maxFile/2+1),
		"digits.csv": "a\n1e999999999\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := dial(t, d, legacy, nil)
	for _, tt := range []struct {
		file, want string
		failed     bool
	}{
		{"empty.csv", "empty.csv is empty", true},
		{"header.csv", `{"file":"header.csv","rows":0,"columns":[],"skipped":["a","b"]}`, false},
		{"ragged.csv", "ragged.csv is not a CSV file: record on line 2: wrong number of fields.", true},
		{"mixed.csv", `"columns":[{"name":"a","sum":0.3,"average":0.15,"count":2},{"name":"c","sum":7,"average":7,"count":1}],"skipped":["b"]`, false},
		{"large.csv", "large.csv is too large", true},
		{"digits.csv", `"columns":[],"skipped":["a"]`, false},
	} {
		text, _, failed := call(t, s, "analyze_csv", `{"filepath":"`+tt.file+`"}`)
		if failed != tt.failed || !strings.Contains(text, tt.want) {
			t.Errorf("%s: isError %v, got %s\nwant %s", tt.file, failed, text, tt.want)
		}
	}
}

func TestBundledNamesAreStable(t *testing.T) {
	if got, want := bundledFiles(), []string{"employees.csv", "sales.csv", "visitors.csv"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: descriptions and error messages name them", got, want)
	}
}
