// Command picture runs a script in a terminal and writes what can be seen there
// as SVG, for the README.
//
//	picture [-update] SCRIPT PICTURE
//
// The script is a txtar archive: lines of its comment that begin with "$ " are
// commands, its files are in the working directory. Times differ from one run to
// the next and are not compared: a picture that differs in nothing else stays as
// it is. Without -update it only says whether the picture is up to date.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/tools/txtar"
)

func main() {
	update := flag.Bool("update", false, "write the picture where it is not up to date")
	root := flag.String("root", "../..", "folder of the module that has cmd/dragoman")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: picture [-update] SCRIPT PICTURE")
		os.Exit(2)
	}
	if err := run(*root, flag.Arg(0), flag.Arg(1), *update); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func run(root, script, picture string, update bool) error {
	archive, err := txtar.ParseFile(script)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "picture-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin, work := filepath.Join(dir, "bin"), filepath.Join(dir, "work")
	if err := prepare(root, bin, work, archive); err != nil {
		return err
	}
	t := newTerminal()
	for line := range strings.Lines(string(archive.Comment)) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if !ok {
			continue
		}
		t.prompt(command)
		if err := t.run(command, bin, work); err != nil {
			return err
		}
	}
	drawn := svg(t.lines())
	now, err := os.ReadFile(picture)
	switch {
	case err == nil && timeless(string(now)) == timeless(drawn):
		return nil
	case !update:
		return fmt.Errorf("%s is not what %s shows; run \"make picture\" and look at it", picture, script)
	}
	return os.WriteFile(picture, []byte(drawn), 0o644)
}

// prepare builds the command and writes the files of the script.
func prepare(root, bin, work string, archive *txtar.Archive) error {
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "dragoman"), "./cmd/dragoman")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building dragoman: %w\n%s", err, out)
	}
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	for _, f := range archive.Files {
		if err := os.WriteFile(filepath.Join(work, f.Name), f.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

var (
	duration = regexp.MustCompile(` *\b\d+(\.\d+)?(ns|µs|ms|s)\b`)
	place    = regexp.MustCompile(` (x|textLength)="[\d.]+"`)
)

// timeless takes out of a picture what differs from one run to the next.
func timeless(picture string) string {
	return place.ReplaceAllString(duration.ReplaceAllString(picture, " TIME"), "")
}
