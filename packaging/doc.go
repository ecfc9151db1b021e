// Package packaging has what stands around the binary in a release: images,
// the service, and the files of the packages. Its tests build and run all of it.
//
// What takes long, or needs the release to be built, runs with "make snapshot".
package packaging
