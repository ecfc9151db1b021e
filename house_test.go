package dragoman_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/dragoman-mcp/dragoman"

// layers are the packages from low to high. A package imports lower rows only.
var layers = [][]string{
	{"internal/rawjson", "internal/sse", "internal/glob", "internal/bounded", "internal/derived", "internal/clip", "internal/park", "internal/pace", "internal/origin", "internal/addresses", "internal/wholefile", "internal/guard", "internal/retry", "internal/secret", "internal/unseen", "internal/invalid", "internal/leaktest", "internal/cputime", "internal/patience"},
	{"internal/right", "internal/accesstoken", "internal/canonical", "internal/once", "internal/commandline"},
	{"internal/apikey"},
	{"", "schema", "rehearsal"},
	{"internal/snapshot"},
	{"dialect", "result", "mcp", "toolsettest", "internal/pin"},
	{"openai/memory"},
	{"openai/model"},
	{"openai", "lint", "internal/prove"},
	{"toolkit"},
	{"internal/store", "internal/safehttp", "internal/telemetry", "internal/demo", "internal/fakemcp"},
	{"internal/credential", "internal/upstream", "internal/caller", "internal/trust"},
	{"internal/servers", "internal/meter"},
	{"internal/catalog"},
	{"servers"},
	{"internal/cache", "internal/approval", "internal/limit", "internal/policy", "internal/audit"},
	{"internal/ledger"},
	{"internal/gate"},
	{"internal/session"},
	{"internal/api", "internal/mcpserve", "internal/console", "internal/terminal"},
	{"internal/config"},
	{"internal/gateway"},
	{"cmd/dragoman"},
}

// outside are programs and tests that may import anything.
var outside = []string{"e2e", "bench", "examples", "mcp/conformance", "packaging"}

// only says which packages alone may import a module.
var only = map[string][]string{
	"github.com/modelcontextprotocol/go-sdk/mcp": {"internal/demo", "toolkit"},
	"modernc.org/sqlite":                         {"internal/store"},
	"github.com/jackc/pgx":                       {"internal/store"},
	"charm.land/":                                {"internal/terminal"},
	"github.com/yuin/goldmark":                   {"internal/terminal"},
}

// TestLayers holds the rules of docs/design.md that a machine can hold.
func TestLayers(t *testing.T) {
	row := map[string]int{}
	for i, packages := range layers {
		for _, p := range packages {
			row[p] = i
		}
	}
	for pkg, files := range goFiles(t) {
		if under(pkg, outside) {
			continue
		}
		// A package below another one, such as a generator, is part of it.
		own := pkg
		for own != "" && !has(row, own) {
			own = strings.TrimSuffix(path.Dir(own), ".")
		}
		if own == "" && pkg != "" {
			t.Errorf("package %s has no place in the layers", pkg)
			continue
		}
		for _, file := range files {
			test := strings.HasSuffix(file, "_test.go")
			for _, imported := range imports(t, file) {
				for prefix, allowed := range only {
					if strings.HasPrefix(imported, prefix) && !test && !slices.Contains(allowed, pkg) {
						t.Errorf("%s imports %s, which is for %v", file, imported, allowed)
					}
				}
				ours, ok := strings.CutPrefix(imported, module)
				if ours = strings.TrimPrefix(ours, "/"); !ok || test || ours == own || under(ours, []string{own}) && own != "" {
					continue
				}
				if !has(row, ours) {
					t.Errorf("%s imports %s, which has no place in the layers", file, imported)
				} else if row[ours] >= row[own] {
					t.Errorf("%s imports %s, which is not below it", file, imported)
				}
			}
		}
	}
}

// TestPackageComments wants every package to say what it is.
func TestPackageComments(t *testing.T) {
	for pkg, files := range goFiles(t) {
		found := false
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				found = found || len(files) == 1 // a folder of tests alone
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			found = found || f.Doc != nil
		}
		if !found {
			t.Errorf("package %q has no package comment", pkg)
		}
	}
}

// TestNames keeps out names that say nothing, and history.
func TestNames(t *testing.T) {
	banned := []string{"util", "utils", "common", "helper", "helpers", "manager", "service", "types", "core", "v2", "misc", "base"}
	for pkg, files := range goFiles(t) {
		if slices.Contains(banned, path.Base(pkg)) {
			t.Errorf("package name %s says nothing", pkg)
		}
		for _, file := range files {
			if name := strings.TrimSuffix(filepath.Base(file), ".go"); slices.Contains(banned, name) {
				t.Errorf("file name %s says nothing", file)
			}
		}
	}
}

// TestThreatsHaveTests wants each test that docs/security.md names to be in the package
// that stands before it.
func TestThreatsHaveTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		folder := ""
		for i, word := range strings.Split(cells[len(cells)-2], "`") {
			info, err := os.Stat(filepath.FromSlash(word))
			switch {
			case i%2 == 0:
			case err == nil && info.IsDir():
				folder = word
			case strings.HasPrefix(word, "Test") || strings.HasPrefix(word, "Fuzz"):
				if !hasTest(t, folder, word) {
					t.Errorf("docs/security.md: there is no %s in %q", word, folder)
				}
				found++
			}
		}
	}
	if found < 100 {
		t.Errorf("docs/security.md names %d tests", found)
	}
}

func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.FromSlash(folder), "*_test.go"))
	if err != nil || folder == "" {
		return false
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}

// goFiles returns the Go files of this module by package, as paths from its root.
func goFiles(t *testing.T) map[string][]string {
	t.Helper()
	files := map[string][]string{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." {
			base := d.Name()
			_, nested := os.Stat(filepath.Join(name, "go.mod"))
			if base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".") || nested == nil {
				return fs.SkipDir
			}
		}
		if strings.HasSuffix(name, ".go") {
			pkg := filepath.ToSlash(filepath.Dir(name))
			if pkg == "." {
				pkg = ""
			}
			files[pkg] = append(files[pkg], name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func imports(t *testing.T, file string) (paths []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, p)
	}
	return paths
}

func has(row map[string]int, pkg string) bool { _, ok := row[pkg]; return ok }

func under(pkg string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return pkg == f || strings.HasPrefix(pkg, f+"/") })
}
