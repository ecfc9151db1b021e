package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// A service runs lint for a repository.
type service struct {
	// file is where it looks for what it runs.
	file string
	// text is what stands there, with COMMAND for the arguments of lint.
	text string
	// after says what is left to do; empty for nothing.
	after string
}

var services = map[string]service{
	"github": {file: ".github/workflows/mcp-lint.yml", text: githubWorkflow},
	"gitlab": {file: ".gitlab/mcp-lint.yml", text: gitlabJob, after: "include it in .gitlab-ci.yml: include: [{local: .gitlab/mcp-lint.yml}]"},
	"pre-commit": {file: ".pre-commit-config.yaml", text: preCommitHook,
		after: "pre-commit install puts it in front of commits; dragoman has to be installed where they are made"},
}

const (
	githubWorkflow = `# Written by "dragoman lint init": what is wrong with the MCP server is shown beside the
# code, and what is an error stops the change.
name: mcp-lint
on:
  push:
  pull_request:
permissions:
  contents: read
  security-events: write
jobs:
  lint:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
      # What builds your server stands here.
      - uses: actions/setup-go@v6
        with:
          go-version: stable
      - run: go install github.com/dragoman-mcp/dragoman/cmd/dragoman@VERSION
      - run: |
          dragoman lint --format sarif -o mcp-lint.sarif COMMAND
      - uses: github/codeql-action/upload-sarif@v4
        if: always()
        with:
          sarif_file: mcp-lint.sarif
`
	gitlabJob = `# Written by "dragoman lint init": the findings are a test report of the merge request,
# and what is an error fails the job.
mcp-lint:
  stage: test
  image: golang:latest
  script:
    # What builds your server stands here.
    - go install github.com/dragoman-mcp/dragoman/cmd/dragoman@VERSION
    - |
      dragoman lint --format junit -o mcp-lint.xml COMMAND
  artifacts:
    when: always
    reports:
      junit: mcp-lint.xml
`
	preCommitHook = `# Written by "dragoman lint init".
repos:
  - repo: local
    hooks:
      - id: mcp-lint
        name: dragoman lint
        entry: >-
          dragoman lint COMMAND
        language: system
        pass_filenames: false
`
)

func lintInitCommand() *cobra.Command {
	var s selection
	var baseline string
	cmd := &cobra.Command{
		Use:   "init github|gitlab|pre-commit [-- SERVER-COMMAND …]",
		Short: "Write what a service for continuous integration runs",
		Long: `Writes the file by which a service lints the MCP server of a repository at each change:
a workflow for GitHub, whose findings show as code scanning alerts, a job for GitLab,
whose findings show as a test report, or a hook for pre-commit. A file that is there is
left as it is.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := s.args(cmd, args)
			if err != nil {
				return err
			}
			return s.writeService(args, baseline)
		},
	}
	s.flags(cmd)
	cmd.Flags().StringVar(&baseline, "baseline", "", "`FILE` of findings that were there before, and do not count")
	return cmd
}

// writeService writes the file of the service that the arguments name.
func (s *selection) writeService(args []string, baseline string) error {
	if len(args) != 1 || services[args[0]].file == "" {
		return &usageError{fmt.Errorf("there is no service %q", strings.Join(args, " ")), "use github, gitlab or pre-commit"}
	}
	line, err := s.again()
	if err != nil {
		return err
	}
	if baseline != "" {
		line = append([]string{"--baseline", baseline}, line...)
	}
	service := services[args[0]]
	text := strings.NewReplacer("COMMAND", inShell(line), "VERSION", installable(version())).Replace(service.text)
	if err := os.MkdirAll(filepath.Dir(service.file), 0o777); err != nil {
		return err
	}
	file, err := os.OpenFile(service.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, os.ErrExist) {
		return &usageError{fmt.Errorf("%s is there already", service.file), "add to it by hand: dragoman lint " + inShell(line)}
	}
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err := cmp.Or(err, file.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", service.file, err)
	}
	fmt.Printf("wrote %s\n", service.file)
	if service.after != "" {
		fmt.Println(service.after)
	}
	return nil
}

// again are the arguments that choose the same servers once more. Values of variables
// and headers may be secrets, and are left to the environment of whoever runs it.
func (s *selection) again() (line []string, err error) {
	for _, label := range s.labels {
		line = append(line, "--server", label)
	}
	for _, variable := range s.env {
		name, _, _ := strings.Cut(variable, "=")
		line = append(line, "--env", name)
	}
	switch {
	case len(s.headers) > 0:
		return nil, &usageError{errors.New("a header may be a secret, and does not belong into a file"), "name the server in a file for --mcp-config, with ${VARIABLES} in its headers"}
	case s.mcpConfig != "":
		return append(line, "--mcp-config", s.mcpConfig), nil
	case s.url != "":
		return append(line, "--url", s.url), nil
	case len(s.command) > 0:
		return slices.Concat(line, []string{"--"}, s.command), nil
	case s.config != "":
		return append(line, "--config", s.config), nil
	}
	return nil, &usageError{errors.New("which server it shall lint is not said"), `put its command after "--", or use --url, --mcp-config or --config`}
}

// plainWord is what means the same in a shell and in YAML as it does by itself.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=./,-]+$`)

// inShell writes words as a shell reads them.
func inShell(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if quoted[i] = w; !plainWord.MatchString(w) {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// installable is the version that go install takes: that of a release, or the newest.
func installable(version string) string {
	if regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+$`).MatchString(version) {
		return version
	}
	return "latest"
}
