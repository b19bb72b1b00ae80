import { useState } from "react";

type Props = { title: string };

// 🎨 A button.
export const Button = ({ title }: Props) => {
  const [on, setOn] = useState(false);
  const toggle = () => setOn(!on);
  return <button onClick={toggle}>{title}</button>;
};

export default function Page(): JSX.Element {
  return (
    <main>
      <Button title="発射" />
    </main>
  );
}
