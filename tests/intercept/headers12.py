"""What tests read of NVIDIA's headers, of CUDA 12 and 13 alike."""
import re
import subprocess


def preprocessed(include, compiler, headers, *flags):
    text = "".join(f"#include <{header}>\n" for header in headers)
    command = [compiler, "-E", "-P", "-x", "c", "-I", include, *flags, "-"]
    found = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    return " ".join(re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", found).split())


def parametersOf(text):
    """The types of a prototype's parameters, without the parameters' names."""
    types = []
    for parameter in text.split(","):
        words = re.sub(r"\b(struct|enum|const)\b|=.*", "", parameter)
        types.append(re.sub(r"(?<=[\s*])\w+\s*$", "", words.strip()).replace(" ", ""))
    return types


def sizesOf(names, header, include, compiler, folder, *flags):
    """By name: the size of a type in bytes."""
    lines = "".join(f'printf("%s %zu\\n", "{name}", sizeof({name}));' for name in names)
    program = folder + "/sizes"
    subprocess.run([compiler, "-w", "-x", "c", "-I", include, *flags, "-o", program, "-"], check=True, text=True,
                   input=f"#include <{header}>\n#include <stdio.h>\nint main() {{ {lines} }}")
    output = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return dict(line.rsplit(" ", 1) for line in output.splitlines())
