// Package dialect turns MCP tools into function tools that a given provider
// accepts, and what its model answers back into arguments that the MCP server
// accepts.
//
// A [Dialect] is data: what a provider, or an engine behind the OpenAI wire,
// takes in a schema and on the wire. [For] finds one by name, [ForHost] by the
// address of the API, and [Table.Derive] makes one's own. [Dialect.Plan]
// converts one tool; the [Plan] holds the ready bytes of the function tool, says
// what was changed and why, and brings arguments back:
//
//	d := dialect.ForHost("https://api.openai.com/v1")
//	plan, problem := d.Plan(tool)
//	if problem != nil {
//		// this one tool cannot be used; all others can
//	}
//	request.Tools = append(request.Tools, plan.Function())
//	…
//	arguments, repairs, problem := plan.Decode(call.Function.Arguments, choice.FinishReason)
//
// # One request
//
// [Dialect.ConvertTools] plans a whole list, without the tools that cannot be used.
// A request carries so many tools, and so many strict ones, as its provider takes:
// [Document.Fit] leaves out what is too much, and says so; [Dialect.Fit] does it for
// plans of one's own choice. [Document.Find] finds the tool and the plan that a call
// of the model's means.
//
//	doc := d.ConvertTools(list.Tools.All())
//	doc.Fit(d, dialect.Budget{})
//	request.Tools = doc.Tools
//	…
//	tool, plan := doc.Find(call.Function.Name)
//
// # What a plan promises
//
// The schema that is sent was judged by a checker written from the dialect's
// rules alone. Arguments that fit the server's schema can be written in the form
// that is sent, and come back equal, unless a [Change] says that it narrows.
// Whatever the model answers becomes arguments that the server's own schema
// takes, or a problem to tell the model. A tool that a dialect cannot take in
// any form goes out as an object, with its schema in the description.
//
// A tool is strict only where that is equivalent: an object whose members may
// have any name, or a property that is optional and nullable at once, keeps it
// from that. What a dialect does not take moves to the description: defaults,
// enums, bounds, alternatives, and the fields of the result.
//
// # How arguments come back
//
// First it is decided whether the text is complete: arguments that were cut off
// are never run. Then they are read, tolerantly where they have to be, mapped
// back, and judged by the server's schema. Only where that fails is a value
// changed, and only so that it fits: "5" becomes 5 where a number is asked for
// and no text would do. Each [Repair] names its rule.
//
// Rules of reading: emptyArguments, doubleEncoding, codeFence, quotes,
// unquotedNames, trailingComma, pythonLiterals, rawControls, strayBackslash,
// loneSurrogate, invalidUTF8, literalEscapes, duplicateKeys (with equal values),
// extraClosers, emptyObjectBefore, emptyObjectBehind, repeatedObject.
//
// Rules of names: envelope, nearName, misspelledName, pathName.
//
// Rules of fitting: dropNull, enumCase, numberFromString, booleanFromString,
// nullFromString, objectFromString, arrayFromString, stringFromNumber,
// stringFromBoolean, dashedUUID, wrapInArray, plainInteger, originalForm.
//
// # What is stable
//
// [For], [ForHost], [Names], [Table], [Dialect] with its methods, [Plan], [Document] and
// their types are for programs, and keep their form. The features of [Rules] and the passes
// that a [Change] names grow with what providers take: new ones join, and what a schema
// becomes may differ from release to release, which CHANGELOG says.
package dialect
