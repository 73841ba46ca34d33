#!/bin/sh
# Makes an environment of its own for each peer under a folder of your choice: sh benchmarks/peers/install.sh /tmp/peers
# They need about 6 GB on disk. PYTHON=... picks the interpreter (3.11 to 3.13).
set -eu
folder=${1:?give a folder for the environments, outside the repository}
python=${PYTHON:-python3}
mkdir -p "$folder"

make_environment() {
	name=$1
	shift
	if [ -e "$folder/$name/.installed" ]; then
		echo "$name: there already"
		return
	fi
	"$python" -m venv "$folder/$name"
	"$folder/$name/bin/python" -m pip install --quiet "$@"
	touch "$folder/$name/.installed"
	echo "$name: installed"
}

make_environment tensorflow-recommenders "tensorflow==2.21.*" "tf-keras==2.21.*" "tensorflow-recommenders==0.7.7"
make_environment sentence-transformers "sentence-transformers==6.2.0"
make_environment implicit "implicit==0.7.3" "scipy"
