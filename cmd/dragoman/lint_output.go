package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dragoman-mcp/dragoman/internal/door/terminal"
	"github.com/dragoman-mcp/dragoman/lint"
)

// auditOutput is where the report of an audit goes.
type auditOutput struct {
	audit  *audit
	out    io.Writer
	closer io.Closer // nil for standard output
	screen *terminal.Screen

	// found is told of findings as they come; nil where the report is written in the end.
	found  func(sofar *lint.Report, f *lint.Finding)
	stream *terminal.Stream // nil where text is written in the end
	err    error            // of writing what came
}

// outlet makes the output. Findings are written as they come where each is a line, and in
// text where a server runs: one that hangs is waited for, and saved lists take no time.
// Nothing else is written before there is a report.
func (a *audit) outlet(status *terminal.Status, running bool) (*auditOutput, error) {
	o := &auditOutput{audit: a}
	switch {
	case a.fix:
	case a.format == "jsonl":
		o.found = o.line
		return o, o.open()
	case a.format == "text" && running:
		o.found = func(sofar *lint.Report, f *lint.Finding) {
			status.Clear()
			o.stream.Print(sofar, f)
		}
		err := o.open()
		o.stream = terminal.NewStream(o.screen)
		return o, err
	}
	return o, nil
}

// open opens where the report goes, once.
func (o *auditOutput) open() error {
	switch {
	case o.out != nil:
		return nil
	case o.audit.output == "":
		o.out, o.screen = os.Stdout, terminal.NewScreen(os.Stdout)
		return nil
	}
	file, err := os.Create(filepath.Clean(o.audit.output))
	if err != nil {
		return err
	}
	o.out, o.closer, o.screen = file, file, terminal.NewScreen(file)
	return nil
}

// line writes a finding as a line of JSON.
func (o *auditOutput) line(_ *lint.Report, f *lint.Finding) {
	text, err := json.Marshal(f)
	if err == nil {
		_, err = o.out.Write(append(text, '\n'))
	}
	o.err = errors.Join(o.err, err)
}

// write writes the report, or the patch, as far as it was not written as it came.
func (o *auditOutput) write(report *lint.Report, failOn lint.Severity) error {
	if err := errors.Join(o.err, o.open()); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if o.audit.fix {
		patch, mended := report.Patch()
		if _, err := o.out.Write(patch); err != nil {
			return err
		}
		terminal.NewScreen(os.Stderr).Printf("%d of %d findings can be mended in one way only\n", mended, len(report.Findings))
		return nil
	}
	switch o.audit.format {
	case "json":
		return report.WriteJSON(o.out)
	case "jsonl":
		return nil
	case "sarif":
		return report.WriteSARIF(o.out, version())
	case "junit":
		return report.WriteJUnit(o.out, failOn)
	case "markdown":
		return report.WriteMarkdown(o.out)
	}
	if o.stream != nil {
		o.stream.Close(report)
	} else {
		o.screen.Findings(report)
	}
	return nil
}

// Close closes the file that the report went to.
func (o *auditOutput) Close() error {
	if o.closer == nil {
		return nil
	}
	return o.closer.Close()
}
