package lint

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// sdkRule is the finding into which those are folded that belong to an SDK.
const sdkRule = "P034"

var sdkRules = []Rule{{
	ID: sdkRule, Severity: Info, Title: "what the SDK does",
	Why:    "It is the same in every server on this SDK, so that its author can mend it and the author of the server cannot.",
	Advice: "Use the newest version of the SDK, and report there what is left. What is left costs clients what the rules named in the finding say.",
	Source: "measured on the official SDKs for TypeScript (1.32, 2.3) and Go (1.8)",
	Live:   func(*Server, *Live, Say) {}, // [Report.foldSDK] says it
}}

// A library is one on which servers are built, with what is known to be its own doing.
type library struct {
	name string
	// npm and module are the packages that it is published as.
	npm, module string
	// signs reports whether a server that cannot be looked into answers as only this SDK
	// does.
	signs func(*Live) bool
	// does reports, by rule, whether the SDK did what was found.
	does map[string]func(*Live) bool
}

func always(*Live) bool { return true }

// onLines reports whether a server was reached by standard input and output.
func onLines(l *Live) bool { return l.Transport == "stdio" }

var libraries = []library{
	{
		name: "the official SDK for Go", module: "github.com/modelcontextprotocol/go-sdk",
		signs: func(l *Live) bool {
			unknown := l.Answers[askUnknown]
			return unknown.Message == "method not found: \""+unknownMethod+"\"" || strings.HasPrefix(unknown.Body+unknown.Message, "JSON RPC not handled: ")
		},
		does: map[string]func(*Live) bool{
			"P005": func(l *Live) bool { return strings.HasPrefix(l.Answers[askUnknown].Body, "JSON RPC not handled: ") },
			"P013": always,
			"P025": always,
			"R003": func(l *Live) bool { return onLines(l) && l.Rough.Died == notJSON },
		},
	},
	{
		name: "the official SDK for TypeScript", npm: "@modelcontextprotocol/sdk",
		signs: func(l *Live) bool { return l.Era != modern && signsOfTypeScript(l) },
		does:  typeScript,
	},
	{
		name: "the official SDK for TypeScript", npm: "@modelcontextprotocol/server",
		signs: signsOfTypeScript,
		does:  typeScript,
	},
}

// signsOfTypeScript are words of the SDK for what no handler of a server sees.
func signsOfTypeScript(l *Live) bool {
	return l.Answers[askMalformed].Message == "Parse error: Invalid JSON" && l.Answers[askUnknown].Message == "Method not found"
}

var typeScript = map[string]func(*Live) bool{
	"P013": always,
	"P021": onLines,
	"P020": highLevel,
	"O008": highLevel,
}

// highLevel reports whether tools are listed and found by the SDK, which is so where the
// SDK itself says that there is none of a name.
func highLevel(l *Live) bool {
	a := l.Answers[askUnknownTool]
	text := a.Message
	if a.Result != nil {
		text = strings.Join(readResult(a.Result).texts, "\n")
	}
	return strings.Contains(text, "Tool "+unknownTool+" not found")
}

// foldSDK makes one finding of those of a server that belong to its SDK.
func (r *Report) foldSDK(s *Server) {
	if s.Live == nil || s.Live.Era == "" || r.rules[sdkRule] == nil {
		return
	}
	known, version := s.builtOn()
	if known == nil {
		return
	}
	var rules, titles []string
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool {
		does := known.does[f.Rule]
		if f.Server != s.Label || does == nil || !does(s.Live) {
			return false
		}
		if !slices.Contains(rules, f.Rule) {
			rules = append(rules, f.Rule)
			titles = append(titles, f.Title+" ("+f.Rule+")")
		}
		return true
	})
	if len(rules) == 0 {
		return
	}
	name := known.name
	if version != "" {
		name += ", " + cmp.Or(known.npm, known.module) + " " + version
	}
	r.run(r.rules[sdkRule], At{Server: s.Label}, nil, func(say Say) {
		say(here, "%s: %s", name, strings.Join(titles, "; "))
	})
}

// builtOn returns the SDK that a server is built on, and its version where that can be
// seen; nil where nothing is known.
func (s *Server) builtOn() (known *library, version string) {
	if s.command != nil {
		found := 0
		for i := range libraries {
			if v := libraries[i].installed(s.command); v != "" && libraries[i].speaks(s.Live) {
				known, version = &libraries[i], v
				found++
			}
		}
		switch found {
		case 0:
		case 1:
			return known, version
		default:
			return known, "" // nobody knows which
		}
	}
	for i := range libraries {
		if libraries[i].signs(s.Live) {
			return &libraries[i], ""
		}
	}
	return nil, ""
}

// speaks reports whether a server whose SDK lies beside it answers as one on that SDK.
// The older one for TypeScript knows the legacy era alone.
func (k *library) speaks(l *Live) bool {
	if k.npm == "" {
		return true // it is built in
	}
	return l.Answers[askUnknown].Message == "Method not found" && (k.npm != "@modelcontextprotocol/sdk" || l.Era != modern)
}

// installed returns the version of the SDK that a command is built with, or that lies
// beside its script; empty for none. It reads files, and starts nothing.
func (k *library) installed(cmd *exec.Cmd) string {
	if k.module != "" {
		info, err := buildinfo.ReadFile(cmd.Path)
		if err != nil {
			return ""
		}
		for _, m := range info.Deps {
			if m.Path == k.module {
				return m.Version
			}
		}
		return ""
	}
	for _, argument := range cmd.Args[:min(len(cmd.Args), 4)] {
		if !filepath.IsAbs(argument) {
			argument = filepath.Join(cmd.Dir, argument)
		}
		script, err := filepath.EvalSymlinks(argument)
		if err != nil || filepath.Ext(script) == "" {
			continue
		}
		if script, err = filepath.Abs(script); err != nil {
			continue
		}
		for dir := filepath.Dir(script); ; dir = filepath.Dir(dir) {
			if version := manifestVersion(filepath.Join(dir, "node_modules", filepath.FromSlash(k.npm), "package.json")); version != "" {
				return version
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return ""
}

func manifestVersion(file string) string {
	text, err := os.ReadFile(file)
	var manifest struct {
		Version string `json:"version"`
	}
	if err != nil || json.Unmarshal(text, &manifest) != nil {
		return ""
	}
	return fmt.Sprintf("%.40s", manifest.Version)
}
