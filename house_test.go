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

// rooms are the folders of internal, from low to high. What is in one imports its own
// room and lower ones, and of its own room what stands before it in layers.
var rooms = []string{"text", "observe", "wire", "state", "identity", "judge", "show", "reach", "session", "door", "config", "gateway"}

// layers are the packages from low to high. A package imports lower rows only.
var layers = [][]string{
	// What knows nothing of tools.
	{"internal/text/glob", "internal/text/clip", "internal/text/secret", "internal/text/invalid", "internal/text/invisible", "internal/text/qualified", "internal/text/pattern", "internal/text/hostname", "internal/text/money"},
	{"internal/text/base64text", "internal/text/canonical", "internal/text/commandline", "internal/text/poison"},
	{"internal/observe"},
	{"internal/observe/otlp", "internal/observe/prometheus", "internal/observe/logbuffer", "internal/observe/loglevel", "internal/observe/logpace"},
	{"internal/observe/telemetry"},
	{"internal/wire/rawjson", "internal/wire/sse", "internal/wire/flood", "internal/wire/deadline", "internal/wire/origin", "internal/wire/addresses", "internal/wire/retry", "internal/wire/headervalue", "internal/wire/coding"},
	{"internal/wire/toolcall"},
	{"internal/wire/plainhttp"},
	{"internal/wire/safehttp"},
	{"internal/state/atomicfile"},
	{"internal/state/bounded", "internal/state/weakcache", "internal/state/park", "internal/state/store", "internal/state/seal", "internal/state/frame"},
	{"internal/state/watchedfile"},
	{"internal/state/vault"},
	{"internal/state/content"},
	{"internal/state/captured", "internal/state/idempotency", "internal/state/keeping", "internal/state/nodes", "internal/state/run"},
	{"internal/state/mail"},
	{"internal/state/mcpsession"},
	{"internal/identity/permission"},
	{"internal/identity/apikey", "internal/identity/accesstoken"},
	{"internal/identity/revocation"},
	{"internal/stage/leaktest", "internal/stage/cputime", "internal/stage/liveheap", "internal/stage/freeport", "internal/stage/patience", "internal/stage/pgtest", "internal/stage/fakeresponses", "internal/stage/resetting", "internal/stage/authority"},
	{"internal/stage/storetest"},
	{"internal/stage/node", "internal/stage/queryplan"},

	// The nouns, and the library on them.
	{"", "schema", "rehearsal"},
	{"internal/state/snapshot", "internal/state/cache"},
	{"dialect", "result", "mcp", "toolsettest", "internal/judge/pin"},
	{"openai/memory", "internal/reach/find"},
	{"internal/state/turns"},
	{"openai/model"},
	{"openai/internal/output", "openai/hosted"},
	{"openai/internal/recall", "openai/internal/transcript"},
	{"openai/chat", "lint", "internal/prove"},
	{"openai/responses", "openai/messages"},
	{"internal/state/stored"},
	{"openai"},
	{"toolkit"},
	{"internal/stage/demo", "internal/stage/fakemcp"},

	// The gateway.
	{"internal/identity/caller"},
	{"internal/identity/signin"},
	{"internal/judge/policy", "internal/judge/limit", "internal/judge/approval", "internal/judge/audit", "internal/judge/pinning", "internal/judge/meter", "internal/judge/usage"},
	{"internal/judge/budget"},
	{"internal/judge/ledger", "internal/judge/gate"},
	{"internal/show"},
	{"internal/reach/tlsfiles"},
	{"internal/reach/sandbox", "internal/reach/credential", "internal/reach/upstream"},
	{"internal/reach/logins"},
	{"internal/reach/servers"},
	{"internal/reach/relay"},
	{"internal/reach/catalog"},
	{"servers"},
	{"internal/session"},
	{"internal/door"},
	{"internal/door/api", "internal/door/console", "internal/door/mcpserve", "internal/door/ops", "internal/door/terminal"},
	{"internal/config"},
	{"internal/gateway"},
	{"internal/stage/replicas"},
	{"cmd/dragoman"},
}

// outside are programs and tests that may import anything.
var outside = []string{"e2e", "bench", "examples", "mcp/conformance", "packaging"}

// only says which packages alone may import a module.
var only = map[string][]string{
	"github.com/modelcontextprotocol/go-sdk/mcp": {"internal/stage/demo", "toolkit"},
	"modernc.org/sqlite":                         {"internal/state/store"},
	"github.com/jackc/pgx":                       {"internal/state/store"},
	"charm.land/":                                {"internal/door/terminal"},
	"github.com/yuin/goldmark":                   {"internal/door/terminal"},
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
		if under(pkg, outside) || isRoom(pkg) {
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

// light are the public packages. They bring no database along: programs import them, and build
// what they import.
var light = []string{"", "toolkit", "lint", "mcp", "openai/chat", "openai/responses", "openai/messages", "openai/model", "openai/memory", "schema", "dialect", "result", "rehearsal", "toolsettest", "servers", "openai", "openai/hosted", "toolkit/openapi", "toolkit/jwt"}

// TestPublicPackagesAreLight follows what public packages import.
func TestPublicPackagesAreLight(t *testing.T) {
	files := goFiles(t)
	for _, pkg := range light {
		seen := map[string]bool{}
		var follow func(pkg, way string)
		follow = func(pkg, way string) {
			if seen[pkg] {
				return
			}
			seen[pkg] = true
			if pkg == "internal/state/store" {
				t.Errorf("a database comes along: %s", way)
				return
			}
			for _, file := range files[pkg] {
				if strings.HasSuffix(file, "_test.go") {
					continue
				}
				for _, imported := range imports(t, file) {
					if ours, ok := strings.CutPrefix(imported, module); ok {
						next := strings.TrimPrefix(ours, "/")
						follow(next, way+" → "+next)
					}
				}
			}
		}
		follow(pkg, pkg)
	}
}

// TestRooms wants each folder of internal to be a room that says what it is for, and
// imports between rooms to go down. The nouns and the library on them are of no room.
func TestRooms(t *testing.T) {
	floor := func(pkg string) int {
		name, _, _ := strings.Cut(strings.TrimPrefix(pkg, "internal/"), "/")
		return slices.Index(rooms, name)
	}
	for pkg, files := range goFiles(t) {
		if !strings.HasPrefix(pkg, "internal/") {
			continue
		}
		if !under(pkg, []string{"internal/stage", "internal/prove"}) && floor(pkg) < 0 {
			t.Errorf("package %s is in no room", pkg)
		}
		for _, file := range files {
			for _, imported := range imports(t, file) {
				ours, ok := strings.CutPrefix(imported, module+"/")
				if !ok || strings.HasSuffix(file, "_test.go") || !strings.HasPrefix(ours, "internal/") || floor(pkg) < 0 || floor(ours) < 0 {
					continue
				}
				if floor(ours) > floor(pkg) {
					t.Errorf("%s imports %s, of a room above its own", file, imported)
				}
			}
		}
	}
	folders, err := os.ReadDir("internal")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join("internal", folder.Name(), "doc.go")); err != nil && !slices.Contains([]string{"prove", "session", "config", "gateway"}, folder.Name()) {
			t.Errorf("the room internal/%s does not say in a doc.go what it is for", folder.Name())
		}
	}
}

// isRoom reports whether a folder is a room, which has packages and is none.
func isRoom(pkg string) bool {
	name, ok := strings.CutPrefix(pkg, "internal/")
	return ok && slices.Contains([]string{"text", "wire", "state", "identity", "judge", "reach", "stage"}, name)
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

// TestOneSeparator wants names that say whose they are, label__name, to be made and taken
// apart in one package. Others that join with two underscores join something else: outer
// and inner properties, a client's namespaces, definitions of a schema.
func TestOneSeparator(t *testing.T) {
	others := []string{"internal/text/qualified", "dialect", "openai/responses/tools.go", "rehearsal", "bench", "e2e"}
	for pkg, files := range goFiles(t) {
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || under(pkg, others) || slices.Contains(others, filepath.ToSlash(file)) {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), `"__"`) {
				t.Errorf("%s joins or cuts names by itself: internal/text/qualified does", file)
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

// TestDecisions wants each decision in the index, under the title that it has.
func TestDecisions(t *testing.T) {
	const folder = "docs/decisions/"
	index, err := os.ReadFile(folder + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(folder + "[0-9]*.md")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d decisions, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		number, _, _ := strings.Cut(name, "-")
		first, _, _ := strings.Cut(string(text), "\n")
		title, ok := strings.CutPrefix(first, "# "+number+": ")
		if !ok {
			t.Errorf("%s begins with %q, not with \"# %s: title\"", name, first, number)
			continue
		}
		if line := "* [" + number + "](" + name + ") " + title + "\n"; !strings.Contains(string(index)+"\n", line) {
			t.Errorf("%sREADME.md lacks, under its subject: %s", folder, line)
		}
	}
}
