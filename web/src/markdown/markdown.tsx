// Draws an answer's Markdown from data: every piece of text goes through React, none becomes HTML.
import { Fragment, type ReactNode, memo } from 'react'
import { assertNever } from '../assert-never.ts'
import { CopyButton } from '../shell/copy-button.tsx'
import { type Block, parseBlocks } from './blocks.ts'
import { type Inline, parseInline } from './inline.ts'
import type { Table } from './table.ts'

export function Markdown({ text }: { text: string }): ReactNode {
  return <div className="markdown">{drawBlocks(parseBlocks(text))}</div>
}

function drawBlocks(blocks: readonly Block[]): ReactNode {
  // Blocks are only ever added at the end, so their place is their identity.
  return blocks.map((block, index) => <BlockView key={index} block={block} />)
}

/** While an answer grows only its last block has changed; the others are not drawn again. */
const BlockView = memo(
  ({ block }: { block: Block }): ReactNode => drawBlock(block),
  (before, after) => before.block.source === after.block.source,
)

function drawBlock(block: Block): ReactNode {
  switch (block.kind) {
    case 'paragraph':
      return (
        <p>
          <Line text={block.text} />
        </p>
      )
    case 'heading': {
      // The page has its own first two levels.
      const Tag = `h${Math.min(6, block.level + 2)}` as 'h3' | 'h4' | 'h5' | 'h6'
      return (
        <Tag data-level={block.level}>
          <Line text={block.text} />
        </Tag>
      )
    }
    case 'code':
      return <CodeBlock language={block.language} text={block.text} />
    case 'list': {
      const items = block.items.map((item, index) => <li key={index}>{drawItem(item)}</li>)
      return block.start === null ? <ul>{items}</ul> : <ol start={block.start}>{items}</ol>
    }
    case 'quote':
      return <blockquote>{drawBlocks(block.blocks)}</blockquote>
    case 'rule':
      return <hr />
    case 'table':
      return <TableView table={block} />
    default:
      return assertNever(block)
  }
}

/** An item's first paragraph stands beside its mark, without a paragraph's distance. */
function drawItem(blocks: readonly Block[]): ReactNode {
  const [first, ...rest] = blocks
  if (first?.kind !== 'paragraph') return drawBlocks(blocks)
  return (
    <>
      <Line text={first.text} />
      {drawBlocks(rest)}
    </>
  )
}

function CodeBlock({ language, text }: { language: string; text: string }): ReactNode {
  return (
    <figure className="code">
      <figcaption>
        <span>{language === '' ? 'text' : language}</span>
        <CopyButton text={text} what="this code" hasWords />
      </figcaption>
      <pre tabIndex={0} aria-label={language === '' ? 'Code' : `Code in ${language}`}>
        <code>{text}</code>
      </pre>
    </figure>
  )
}

function TableView({ table }: { table: Table }): ReactNode {
  const alignOf = (column: number): { textAlign: 'left' | 'center' | 'right' } => ({
    textAlign: table.aligns[column] ?? 'left',
  })
  return (
    <div className="table" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>
            {table.head.map((cell, column) => (
              <th key={column} style={alignOf(column)}>
                <Line text={cell} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column} style={alignOf(column)}>
                  <Line text={cell} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Line({ text }: { text: string }): ReactNode {
  return drawInline(parseInline(text))
}

function drawInline(nodes: readonly Inline[]): ReactNode {
  return nodes.map((node, index) => <Fragment key={index}>{drawNode(node)}</Fragment>)
}

function drawNode(node: Inline): ReactNode {
  switch (node.kind) {
    case 'text':
      return node.text
    case 'code':
      return <code>{node.text}</code>
    case 'break':
      return <br />
    case 'strong':
      return <strong>{drawInline(node.children)}</strong>
    case 'emphasis':
      return <em>{drawInline(node.children)}</em>
    case 'strike':
      return <s>{drawInline(node.children)}</s>
    case 'link':
      return (
        <a href={node.href} target="_blank" rel="noopener noreferrer nofollow">
          {drawInline(node.children)}
        </a>
      )
    default:
      return assertNever(node)
  }
}
